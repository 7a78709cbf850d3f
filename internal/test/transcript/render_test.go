package transcript

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// render is what was said, as text, with names in place of what is drawn at
// random.
func render(all []*exchange) string {
	var b strings.Builder
	names := &names{ids: make(map[string]int), tags: make(map[string]int)}
	var last *step
	for _, e := range all {
		if e.step != last {
			last = e.step
			fmt.Fprintf(&b, "== %s\n", e.title)
		}
		e.render(&b, names)
	}
	return b.String()
}

func (e *exchange) render(b *strings.Builder, names *names) {
	if len(e.messages) == 0 {
		return
	}
	fmt.Fprintf(b, "-- %s\n", e.client)
	xids := make(map[string]int)
	if e.concurrent {
		e.messages = sorted(e.messages)
	}
	var last *message
	for _, m := range e.messages {
		fmt.Fprintf(b, "%8s %s", e.when(m, last), m.mark)
		switch {
		case m.xid == "":
		case m.xid[0] == '-':
			fmt.Fprintf(b, " #%s", m.xid)
		default:
			fmt.Fprintf(b, " #%d", number(xids, m.id()))
		}
		if m.mark == ">" {
			fmt.Fprintf(b, " %s, %d bytes", m.op, m.frame.bytes)
			last = m
		}
		if words := names.in(m.words); words != "" {
			b.WriteString(" " + words)
		}
		b.WriteByte('\n')
	}
}

// when is how many milliseconds into its step a message was sent or seen, or that it
// was sent at once after the request before. Whether the two left in one write is
// for the scheduler to say.
func (e *exchange) when(m, last *message) string {
	const tenth = time.Millisecond / 10
	switch {
	case m.mark == ">" && last != nil && m.at == last.at:
		return "+"
	case e.timeless:
		return "."
	}
	return fmt.Sprint(float64((m.at-e.begin).Round(tenth)/tenth) / 10)
}

// id tells requests apart.
func (m *message) id() string { return fmt.Sprint(m.conn, " ", m.xid) }

var queuePattern = regexp.MustCompile(`Path="([^"]*?)(/_c_[^"]*)?"`)

// queue is the parent of a node with a UUID in its name, or else the path: of what a
// request is about, the first there.
func (m *message) queue() (path string, known bool) {
	if found := queuePattern.FindStringSubmatch(m.words); found != nil {
		return found[1], true
	}
	return "", false
}

// sorted puts what several goroutines sent at one instant, each for a queue, into
// the order of the queues, and the replies into that of the requests.
func sorted(messages []*message) []*message {
	queues := make(map[*message]string)
	var requests []*message
	for _, m := range messages {
		if m.mark != ">" {
			continue
		}
		path, known := m.queue()
		if !known && len(requests) > 0 { // it goes with what was sent just before
			path = queues[requests[len(requests)-1]]
		}
		queues[m], requests = path, append(requests, m)
	}
	slices.SortStableFunc(requests, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(queues[a], queues[b]))
	})
	place := make(map[string]int) // of a request
	for i, m := range requests {
		place[m.id()] = 1 + i
	}
	return slices.SortedStableFunc(slices.Values(messages), func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(min(1, a.place()), min(1, b.place())), cmp.Compare(place[a.id()], place[b.id()]))
	})
}

// names are given in order of appearance.
type names struct{ ids, tags map[string]int }

var (
	zxidPattern     = regexp.MustCompile(` ?\bzxid=0x[0-9a-f]+`)
	statPattern     = regexp.MustCompile(`Stat=\{[^}]*\}`)
	sessionPattern  = regexp.MustCompile(`\b(SessionID|RelativeZxid|LastZxidSeen)=\d+`)
	childrenPattern = regexp.MustCompile(`Children=\[([^\]]*)\]`)
	namePattern     = regexp.MustCompile(`_c_([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f])([0-9a-f]{3})-([0-9a-f])([0-9a-f]{3})-([0-9a-f]{12})-`)
)

// in puts names into words. It leaves out zxids and the fields of a Stat, which are
// the server's.
func (n *names) in(words string) string {
	words = zxidPattern.ReplaceAllString(words, "")
	words = statPattern.ReplaceAllString(words, "Stat")
	words = sessionPattern.ReplaceAllString(words, "$1")
	words = childrenPattern.ReplaceAllStringFunc(words, sortChildren)
	return strings.TrimSpace(namePattern.ReplaceAllStringFunc(words, n.name))
}

// sortChildren sorts a list by sequence numbers: a server's order is by names.
func sortChildren(list string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(list, "Children=["), "]")
	children := strings.Fields(inner)
	key := func(child string) (string, string) {
		rest := namePattern.ReplaceAllString(child, "")
		return rest[max(0, len(rest)-len(`0000000000"`)):], rest
	}
	slices.SortFunc(children, func(a, b string) int {
		aDigits, aRest := key(a)
		bDigits, bRest := key(b)
		return cmp.Or(strings.Compare(aDigits, bDigits), strings.Compare(aRest, bRest))
	})
	return "Children=[" + strings.Join(children, " ") + "]"
}

// name is that of the UUID before a node's name. It says its version, and what one
// of version 8 means: that its owner yields, and the tag of the owner.
func (n *names) name(name string) string {
	parts := namePattern.FindStringSubmatch(name)
	id := fmt.Sprintf("%d", number(n.ids, name))
	switch {
	case !strings.Contains("89ab", parts[5]):
		return "_c_(" + id + ": of a wrong variant)-"
	case parts[3] != "8":
		return "_c_(" + id + ": version " + parts[3] + ")-"
	}
	yields := ""
	if parts[1][0] >= '8' {
		yields = " yields"
	}
	return fmt.Sprintf("_c_(%s: owner %c%s)-", id, 'A'+rune(number(n.tags, parts[7])-1), yields)
}

func number(in map[string]int, what string) int {
	if in[what] == 0 {
		in[what] = len(in) + 1
	}
	return in[what]
}

// counts are the requests of one client in one step by operation.
func (e *exchange) counts() string {
	ops := make(map[string]int)
	for _, m := range e.messages {
		if m.mark == ">" {
			ops[m.op]++
		}
	}
	var all []string
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		all = append(all, fmt.Sprintf("%s %d", op, ops[op]))
	}
	return strings.Join(all, ", ")
}

// roundTrips is how long a step took until what was done had returned. Of one that
// waits for more than servers it says nothing.
func (s *step) roundTrips() string {
	trips := float64(s.took) / float64(2*latency)
	if s.timeless || trips > 10 {
		return "-"
	}
	return fmt.Sprintf("%.1f", trips)
}
