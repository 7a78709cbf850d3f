package check

import (
	"path"
	"sort"
	"strconv"
	"strings"
	"time"
)

// contender is a node in a queue.
type contender struct {
	path   string
	seq    int64
	writes bool // alone, or the write side
	owner  int64
	born   int // index in the log
	died   int // len(log) if it has not
	zxid   int64
	forced bool // somebody else deleted it
}

// history is what the log says of the queues.
type history struct {
	rec    *Record
	queues map[string][]*contender
	byPath map[string]*contender
}

// marks stand before the digits in names.
var marks = []struct {
	mark   string
	writes bool
}{{"__WRIT__", true}, {"__READ__", false}, {"lease-", true}, {"lock-", true}, {"latch-", true}}

func parse(name string) (seq int64, writes, ok bool) {
	for _, m := range marks {
		i := strings.LastIndex(name, m.mark)
		if i < 0 {
			continue
		}
		digits := name[i+len(m.mark):]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err == nil && len(digits) == 10 {
			return n, m.writes, true
		}
	}
	return 0, false, false
}

func historyOf(rec *Record) *history {
	h := &history{rec: rec, queues: make(map[string][]*contender), byPath: make(map[string]*contender)}
	for _, l := range rec.Locks {
		h.queues[l.queue()] = nil
	}
	for i, txn := range rec.Log {
		for _, c := range txn.Changes {
			parent := path.Dir(c.Path)
			if _, ok := h.queues[parent]; !ok {
				continue
			}
			switch c.Kind {
			case Created:
				if seq, writes, ok := parse(path.Base(c.Path)); ok {
					x := &contender{path: c.Path, seq: seq, writes: writes, owner: c.Owner, born: i, died: len(rec.Log), zxid: txn.Zxid}
					h.queues[parent] = append(h.queues[parent], x)
					h.byPath[c.Path] = x
				}
			case Deleted:
				if x := h.byPath[c.Path]; x != nil && x.died == len(rec.Log) {
					x.died = i
					x.forced = txn.Session != x.owner
				}
			}
		}
	}
	return h
}

// by is the number of transactions at a time.
func (h *history) by(t time.Duration) int {
	return sort.Search(len(h.rec.Log), func(i int) bool { return h.rec.Log[i].At > t })
}

// aheadAt returns the nodes that stood before x when n transactions had been
// applied.
func (h *history) aheadAt(x *contender, n int) (ahead []*contender) {
	for _, o := range h.queues[path.Dir(x.path)] {
		if o != x && o.born < n && o.died >= n && before(o, x) {
			ahead = append(ahead, o)
		}
	}
	return ahead
}

// before is the order of a queue. A reader that was a writer stands behind the
// write node whose number it has.
func before(a, b *contender) bool {
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return a.writes && !b.writes || a.writes == b.writes && a.path < b.path
}

// owns is whether a node has the lock when n transactions have been applied:
// it is there, and nobody stands before it who excludes it.
func (h *history) owns(x *contender, l Lock, mode Mode, n int) bool {
	if x.born >= n || x.died < n {
		return false
	}
	ahead := h.aheadAt(x, n)
	switch mode {
	case Lease:
		return len(ahead) < l.Permits
	case Shared:
		for _, o := range ahead {
			if o.writes && o.seq != x.seq {
				return false
			}
		}
		return true
	default:
		return len(ahead) == 0
	}
}

// forcedAt is when others ended a hold by force, Never if nobody did.
func (h *history) forcedAt(hold Hold) time.Duration {
	at, x := Never, h.byPath[hold.Node]
	if x == nil {
		return at
	}
	if t, ok := h.rec.Forced[x.owner]; ok {
		at = t
	}
	if x.forced && x.died < len(h.rec.Log) {
		at = min(at, h.rec.Log[x.died].At)
	}
	return at
}

func (rec *Record) lock(at string) Lock {
	for _, l := range rec.Locks {
		if l.Path == at {
			return l
		}
	}
	return Lock{Path: at}
}
