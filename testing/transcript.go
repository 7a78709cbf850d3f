package zktest

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// maxTranscript is how many lines a transcript keeps.
const maxTranscript = 2000

// transcript has the latest requests and replies in words. The zero value is
// ready; it is guarded by ensemble.mu.
type transcript struct {
	lines []string // a ring once it is full
	next  int
}

func (t *transcript) add(line string) {
	if len(t.lines) < maxTranscript {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.next] = line
	t.next = (t.next + 1) % maxTranscript
}

// Transcript keeps the latest 2,000 requests, replies and events in words. A
// server made with Start writes them into the log of its test if that fails.
func Transcript() Option { return optionFunc(func(c *config) { c.transcript = true }) }

// WriteTranscript writes what Transcript has kept, the oldest first: the time
// since the start, the session or else the number of the connection, and a
// request behind >, a reply behind <, an event behind !, an end behind #. It has
// neither credentials nor the passwords of sessions.
func (s *Server) WriteTranscript(w io.Writer) error {
	var b strings.Builder
	s.e.mu.Lock()
	t := &s.e.said
	for i := range t.lines {
		b.WriteString(t.lines[(t.next+i)%len(t.lines)])
		b.WriteByte('\n')
	}
	s.e.mu.Unlock()
	_, err := io.WriteString(w, b.String())
	return err
}

// sayLocked adds a line about a connection.
func (c *conn) sayLocked(mark string, words ...any) {
	e := c.m.e
	if !e.cfg.transcript {
		return
	}
	who := fmt.Sprintf("conn %d", c.num)
	if c.session != nil {
		who = fmt.Sprintf("%#x", c.session.id)
	}
	if len(e.members) > 1 {
		who = fmt.Sprintf("%d/%s", c.m.index, who)
	}
	line := fmt.Sprintf("%12.6f %s %s", time.Since(e.begun).Seconds(), who, mark)
	for _, word := range words {
		line += " " + text(word)
	}
	e.said.add(line)
}

// sayFrameLocked adds a line about a frame that is sent.
func (c *conn) sayFrameLocked(records []wire.Record) {
	if !c.m.e.cfg.transcript {
		return
	}
	mark := "<"
	words := make([]any, 0, len(records)+1)
	for _, r := range records {
		if h, ok := r.(*wire.ReplyHeader); ok {
			if h.Xid == wire.XidNotification {
				mark = "!"
				continue
			}
			words = append(words, fmt.Sprintf("#%d", h.Xid), h.Code, fmt.Sprintf("zxid=%#x", h.Zxid))
			continue
		}
		words = append(words, r)
	}
	c.sayLocked(mark, words...)
}

// text puts a value into words.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "unreadable"
	case string:
		return v
	case fmt.Stringer:
		return v.String()
	case wire.Empty, *wire.Empty:
		return ""
	}
	return strings.TrimSpace(fields(reflect.Indirect(reflect.ValueOf(v))))
}

// secret are the fields that prove who somebody is; a transcript says how long
// they are.
var secret = map[string]bool{"Auth": true, "Password": true}

// fields lists those of a record that are not zero.
func fields(v reflect.Value) string {
	var b strings.Builder
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i)
		switch {
		case f.IsZero():
		case secret[name.Name]:
			fmt.Fprintf(&b, " %s=(%d bytes)", name.Name, f.Len())
		case name.Anonymous:
			b.WriteString(" " + fields(f))
		case f.Kind() == reflect.Struct:
			fmt.Fprintf(&b, " %s={%s}", name.Name, strings.TrimSpace(fields(f)))
		case f.Type() == reflect.TypeFor[[]wire.MultiOp]():
			for _, op := range f.Interface().([]wire.MultiOp) {
				fmt.Fprintf(&b, " [%v %s]", op.Op, text(op.Request))
			}
		case f.Type() == reflect.TypeFor[[]wire.MultiResult]():
			for _, res := range f.Interface().([]wire.MultiResult) {
				fmt.Fprintf(&b, " [%s]", text(&res))
			}
		case f.Type() == reflect.TypeFor[[]byte](), f.Kind() == reflect.String:
			fmt.Fprintf(&b, " %s=%.200q", name.Name, f.Interface())
		default:
			fmt.Fprintf(&b, " %s=%v", name.Name, f.Interface())
		}
	}
	return b.String()
}
