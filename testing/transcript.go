package zktest

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
)

// A transcript keeps this many lines, of this many bytes each.
const (
	maxTranscript = 2000
	maxLine       = 4000
)

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

// Transcript keeps the latest 2,000 requests, replies and events in words, with
// at most 4,000 bytes of each. A server made with Start writes them into the
// log of its test if the test fails.
func Transcript() Option { return optionFunc(func(c *config) { c.transcript = true }) }

// WriteTranscript writes what Transcript has kept, a line each, the oldest
// first. A line has the time since the start and the session, or the number of
// a connection without one. Then follows a request after >, a reply after <, an
// event after !, or the end of the connection after #. It has neither
// credentials nor the passwords of sessions.
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
	line = strings.ReplaceAll(line, "\n", `\n`)
	if len(line) > maxLine {
		line = fmt.Sprintf("%s (%d bytes more)", line[:maxLine], len(line)-maxLine)
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
	case wire.Names: // whose fields are its own
		return fmt.Sprintf("%q", v.Strings())
	case fmt.Stringer:
		return v.String()
	}
	if s := reflect.Indirect(reflect.ValueOf(v)); s.Kind() == reflect.Struct {
		return strings.TrimSpace(fields(s))
	}
	return fmt.Sprint(v)
}

// secret has the names of fields with passwords and credentials. A transcript
// shows only how long they are.
var secret = map[string]bool{"Auth": true, "Password": true, "Token": true}

// fields lists those of a record that are not zero.
func fields(s reflect.Value) string {
	var b strings.Builder
	for i := range s.NumField() {
		f, name := s.Field(i), s.Type().Field(i)
		switch {
		case f.IsZero(), !name.IsExported():
			continue
		case secret[name.Name]:
			fmt.Fprintf(&b, " %s=(%d bytes)", name.Name, f.Len())
			continue
		case name.Anonymous:
			b.WriteString(" " + fields(f))
			continue
		}
		switch v := f.Interface().(type) {
		case []wire.MultiOp:
			for _, op := range v {
				fmt.Fprintf(&b, " [%v %s]", op.Op, text(op.Request))
			}
		case []wire.MultiResult:
			for _, res := range v {
				fmt.Fprintf(&b, " [%s]", text(res))
			}
		case []byte, string:
			fmt.Fprintf(&b, " %s=%.200q", name.Name, v)
		case []string:
			fmt.Fprintf(&b, " %s=%q", name.Name, v)
		case wire.Names:
			fmt.Fprintf(&b, " %s=%s", name.Name, text(v))
		case wire.Stat:
			fmt.Fprintf(&b, " %s={%s}", name.Name, text(v))
		default:
			fmt.Fprintf(&b, " %s=%v", name.Name, v)
		}
	}
	return b.String()
}
