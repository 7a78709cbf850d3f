package differential

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// The cases here show where zktest is known to differ. Each has a recording of
// both, which must stay as they are; docs/testing.md has the reasons.

func addPinned(name string, v variant, script func(*run)) {
	addPinnedOf(zktest.Versions(), name, v, script)
}

// addPinnedOf is addPinned for a difference that is there in some versions only.
func addPinnedOf(versions []string, name string, v variant, script func(*run)) {
	cases = append(cases, testcase{name: "differs-" + name, variant: v, pinned: versions, script: script})
}

// null is a body that begins with a null string.
func null(rest ...byte) []byte { return append([]byte{0xff, 0xff, 0xff, 0xff}, rest...) }

func init() {
	addPinned("ttl", variant{noTTL: true, defaults: true}, func(r *run) {
		a := r.connect("a")
		a.do(wire.OpCreateTTL, createTTL(r.at("/t"), wire.FlagPersistentTTL, 1e7))
		a.do(wire.OpExists, get(r.at("/t")))
	})
	addPinned("order", variant{}, func(r *run) {
		a := r.connect("a")
		for _, name := range []string{"zebra", "lion", "ape", "fox", "newt", "gnu"} {
			a.do(wire.OpCreate, create(r.at("/"+name), wire.FlagEphemeral))
		}
		r.unsorted = true
		a.do(wire.OpGetChildren, get(r.root)) // getEphemerals depends on the whole path, which is another each time
	})
	addPinned("null-path", variant{}, func(r *run) {
		a := r.connect("a")
		a.doRaw(wire.OpExists, "null", null(0))
		a.doRaw(wire.OpGetData, "null", null(0))
		a.doRaw(wire.OpGetACL, "null", null())
		a.doRaw(wire.OpDelete, "null", null(0, 0, 0, 0))
	})
	addPinnedOf([]string{"3.8.0"}, "check-watches", variant{}, func(r *run) {
		a := r.connect("a")
		a.do(wire.OpAddWatch, addWatch(r.root, wire.AddWatchPersistentRecursive))
		a.do(wire.OpCheckWatches, watches("no path", wire.WatchAny))
		a.do(wire.OpCheckWatches, watches(r.root, wire.WatchAny))
	})
	addPinned("multiread-writes", variant{}, func(r *run) {
		a := r.connect("a")
		a.do(wire.OpMultiRead, multi(op(wire.OpCreate, create(r.at("/x"), 0))))
		a.do(wire.OpMultiRead, multi(op(wire.OpDelete, del(r.at("/x"), 0)), op(wire.OpCheck, del(r.root, -1))))
	})
	addPinned("create-session", variant{}, func(r *run) {
		a := r.connect("a")
		a.write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpCreateSession}, raw{0, 0, 0x27, 0x10}))
		frame, err := a.read()
		require.NoError(r.t, err)
		var res wire.ConnectResponse
		d := wire.NewDecoder(frame)
		res.Decode(d)
		r.note(fmt.Sprintf("the answer is a connect response: %t", d.Err() == nil && d.Len() == 0))
		a.nc.Close()
		a.over = true
	})
	addPinned("session-ids", variant{}, func(r *run) {
		for i := range 3 {
			c := r.connect(fmt.Sprint("c", i))
			r.note(fmt.Sprintf("the id is small: %t", c.session < 1<<56+1000))
		}
	})
	addPinned("words", variant{words: "srvr", defaults: true}, func(r *run) {
		for _, w := range []string{"srvr", "ruok", "mntr"} {
			r.wordKeys(w)
		}
	})
	addPinned("mntr", variant{}, func(r *run) {
		r.wordKeys("mntr")
		r.wordKeys("envi")
	})
}

// wordKeys sends a four-letter word and shows what begins the lines of the
// answer, without what Java measures of itself.
func (r *run) wordKeys(word string) {
	r.t.Helper()
	r.printf("word> %s", word)
	var keys []string
	for line := range strings.Lines(r.ask(word)) {
		key := strings.FieldsFunc(line, func(c rune) bool { return c == '\t' || c == '=' || c == ':' || c == '\n' })
		switch {
		case len(key) == 0:
		case strings.Contains(key[0], "differential"): // counted for each node of the root
		case strings.Contains(key[0], "file_descriptor"): // zktest knows them on Linux only
		default:
			keys = append(keys, key[0])
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		r.printf("word< %s", key)
	}
}
