package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// exchange is what one client and the server said to each other in one step.
type exchange struct {
	*step
	client   string
	messages []*message
}

// message is a request, a reply, an event, or the end of a connection.
type message struct {
	at    time.Duration // when the client sent or saw it
	conn  int
	mark  string // >, <, ! or #
	op    string // of a request
	xid   string // of a request and its reply
	words string
	frame *frame // nil for the end of a connection, and for what the client has not seen
}

// What a server writes about a connection, and about a request or a reply there.
var (
	rowPattern = regexp.MustCompile(`^ *(\d+\.\d{6}) (conn \d+|0x[0-9a-f]+) ([><!#]) (.*)\n$`)
	xidPattern = regexp.MustCompile(`^(?:(\w+) )?#(-?\d+) ?(.*)$`)
)

// exchanges puts the words that the server has beside what passed at the clients.
func (w *world) exchanges() (all []*exchange) {
	var text strings.Builder
	if err := w.srv.WriteTranscript(&text); err != nil {
		w.Fatal(err)
	}
	messages := make(map[*client][]*message)
	for row := range strings.Lines(text.String()) {
		c, m, err := w.parse(row)
		if err != nil {
			w.Fatalf("%v: %q", err, row)
		}
		messages[c] = append(messages[c], m)
	}
	for _, c := range w.clients {
		for _, f := range c.unsaid() { // pings, and what has not arrived
			m := &message{at: f.at, conn: f.conn, mark: ">", op: ops[f.op], xid: strconv.Itoa(int(f.xid)), frame: f}
			if m.op != "ping" {
				m.words = "(not seen by the server)"
			}
			messages[c] = append(messages[c], m)
		}
		slices.SortStableFunc(messages[c], byTime)
	}
	for _, s := range w.steps {
		for _, c := range w.clients {
			one := &exchange{step: s, client: c.name}
			for _, m := range messages[c] {
				if m.at >= s.begin && m.at < s.end {
					one.messages = append(one.messages, m)
				}
			}
			all = append(all, one)
		}
	}
	return all
}

// parse takes a row of the server's transcript apart.
func (w *world) parse(row string) (*client, *message, error) {
	fields := rowPattern.FindStringSubmatch(row)
	if fields == nil {
		return nil, nil, errors.New("the server's transcript has another form")
	}
	c := w.whose[fields[2]]
	if c == nil {
		return nil, nil, errors.New("no client has this session or connection")
	}
	if n, found := strings.CutPrefix(fields[2], "conn "); found {
		c.conn, _ = strconv.Atoi(n)
	}
	at, err := time.ParseDuration(fields[1] + "s")
	if err != nil {
		return nil, nil, err
	}
	m := &message{at: at + latency, conn: c.conn, mark: fields[3], words: fields[4]}
	if x := xidPattern.FindStringSubmatch(m.words); x != nil {
		m.op, m.xid, m.words = x[1], x[2], x[3]
	}
	xid, _ := strconv.Atoi(m.xid) // that of a session's begin is 0
	switch m.mark {
	case ">":
		if m.xid == "" {
			m.op, m.words, _ = strings.Cut(m.words, " ")
		}
		if m.frame = c.find(c.conn, false, int32(xid)); m.frame == nil {
			return nil, nil, fmt.Errorf("%s has not written this", c.name)
		}
	case "<":
		m.frame = c.find(c.conn, true, int32(xid))
	case "!":
		m.frame = c.find(c.conn, true, -1)
	}
	if m.frame != nil {
		m.at = m.frame.at
	}
	return c, m, nil
}

// byTime puts what was seen at some time before what was sent then.
func byTime(a, b *message) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.place(), b.place()))
}

// place is where a request stands among all, and 0 for what is none.
func (m *message) place() int {
	if m.mark != ">" {
		return 0
	}
	return 1 + m.frame.nth
}
