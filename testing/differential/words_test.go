package differential

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// What differs in the answers to four-letter words: numbers, and the version.
var (
	wordVersion = regexp.MustCompile(`(?m)^Zookeeper version: .*$`)
	wordNumber  = regexp.MustCompile(`0x[0-9a-f]+|-?[0-9][0-9.]*(:[0-9]+)?`)
	wordPath    = regexp.MustCompile(`(?m)^(data\w*Dir)=.*$`)
)

// word sends a four-letter word and shows the answer.
func (r *run) word(word string) {
	r.t.Helper()
	r.printf("word> %s", word)
	text := strings.ReplaceAll(r.ask(word), r.root, "$")
	text = wordVersion.ReplaceAllString(text, "Zookeeper version: ...")
	text = wordPath.ReplaceAllString(text, "$1=...")
	text = wordNumber.ReplaceAllString(text, "N")
	lines := slices.Collect(strings.Lines(text))
	if word == "cons" || word == "stat" { // in the order of a hash table
		slices.Sort(lines)
		lines = slices.Compact(lines)
		// The connection that asks is listed if the server gets round to it, and
		// so is one that has just been closed.
		lines = slices.DeleteFunc(lines, func(l string) bool {
			return word == "cons" && (strings.HasSuffix(l, "sent=N)\n") || strings.Contains(l, "lop=CLOS"))
		})
	}
	for _, line := range lines {
		r.printf("word< %q", line)
	}
}

// ask sends a four-letter word and returns the answer.
func (r *run) ask(word string) string {
	r.t.Helper()
	c := r.dial("word")
	c.over = true // not one to be pinged
	c.write([]byte(word))
	b, err := io.ReadAll(c.br)
	require.NoError(r.t, err)
	c.nc.Close()
	return string(b)
}

func init() {
	add("words", func(r *run) {
		for _, w := range []string{"ruok", "isro", "srvr", "conf", "wchs", "wchp", "wchc", "crst", "srst", "ruok\n", "xxxx"} {
			r.word(w)
		}
		a := r.connect("a")
		a.do(wire.OpGetData, watch(r.root))
		a.do(wire.OpGetChildren, watch(r.root))
		for _, w := range []string{"wchs", "wchp", "wchc", "stat", "cons"} {
			r.word(w)
		}
		a.do(wire.OpSetData, set(r.root, "x", -1))
		r.word("wchs")
	})
	addWith("words-refused", variant{words: "srvr,isro"}, func(r *run) {
		for _, w := range []string{"ruok", "isro", "mntr", "xxxx"} {
			r.word(w)
		}
	})
	addWith("reconfig-enabled", variant{reconfig: true}, func(r *run) {
		a := r.connect("a")
		a.do(wire.OpReconfig, &wire.ReconfigRequest{Joining: "server.1=127.0.0.1:1:2:participant;3", ConfigID: -1})
		a.do(wire.OpReconfig, &wire.ReconfigRequest{ConfigID: 5})
		a.do(wire.OpAuth, auth("digest", "super:secret"))
		a.do(wire.OpReconfig, &wire.ReconfigRequest{NewMembers: "server.1=127.0.0.1:1:2:participant;3", ConfigID: -1})
		a.do(wire.OpGetData, get("/zookeeper/config"))
	})
	addWith("ttl-disabled", variant{noTTL: true}, func(r *run) {
		a := r.connect("a")
		for flags := wire.Flags(0); flags <= 7; flags++ {
			a.do(wire.OpCreateTTL, createTTL(r.at("/t"), flags, 1000))
			a.do(wire.OpCreate, create(r.at("/c"), flags))
			a.do(wire.OpMulti, multi(op(wire.OpCreateTTL, createTTL(r.at("/m"), flags, 1000))))
		}
		a.do(wire.OpCreateTTL, createTTL("no path", 5, 1000))
		a.do(wire.OpCreateTTL, createTTL(r.at("/t"), 5, -1))
		a.do(wire.OpGetChildren2, get(r.root))
	})
	addWith("sweeps", variant{sweeps: true}, func(r *run) {
		r.base = math.MaxInt64 // a busy server may try to delete a node twice, at a zxid each
		a := r.connect("a")
		a.do(wire.OpCreateContainer, create(r.at("/never-used"), wire.FlagContainer))
		a.do(wire.OpCreateContainer, create(r.at("/container"), wire.FlagContainer))
		a.do(wire.OpCreate, create(r.at("/container/c"), 0))
		a.do(wire.OpExists, watch(r.at("/container")))
		a.do(wire.OpGetChildren, watch(r.at("/container")))
		a.do(wire.OpDelete, del(r.at("/container/c"), -1))
		a.hear(2)
		a.do(wire.OpCreateTTL, createTTL(r.at("/ttl"), wire.FlagPersistentTTL, 1000))
		a.do(wire.OpExists, watch(r.at("/ttl")))
		a.hear(3)
		a.do(wire.OpGetChildren2, get(r.root))
		a.do(wire.OpMulti, multi(
			op(wire.OpCreateTTL, createTTL(r.at("/parent"), wire.FlagPersistentTTL, 1)),
			op(wire.OpCreate, create(r.at("/parent/c"), 0)),
		))
		a.do(wire.OpCreateTTL, createTTL(r.at("/last"), wire.FlagPersistentTTL, 2000))
		a.do(wire.OpExists, watch(r.at("/last")))
		a.hear(4)
		a.do(wire.OpExists, get(r.at("/parent"))) // it has a child
	})
	add("identities", func(r *run) {
		a := r.connect("a")
		for i, user := range []string{"bob", "eve", "ann", "kim", "super", "zoe", "x", "y", "a-longer-name"} {
			a.do(wire.OpAuth, auth("digest", user+":secret"))
			a.do(wire.OpWhoAmI, wire.Empty{})
			n := r.at(fmt.Sprint("/n", i))
			a.do(wire.OpCreate, &wire.CreateRequest{Path: n, ACL: []wire.ACL{acl(31, "auth", "")}})
			a.do(wire.OpGetACL, path(n))
		}
	})
	add("reconfig-malformed", func(r *run) {
		a := r.connect("a")
		a.doRaw(wire.OpReconfig, "half a length", []byte{0, 0})
		a.do(wire.OpExists, get(r.root))
	})
	add("sasl", func(r *run) {
		a := r.connect("a")
		a.do(wire.OpSASL, &wire.SASLRequest{Token: []byte("token")})
		a.do(wire.OpSASL, &wire.SASLRequest{})
		a.do(wire.OpExists, get(r.root))
	})
}
