package locks_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// after does something at a moment of half a millisecond, unless it is stopped before. A timer
// that is due would break the race detector in a bubble (golang/go#78156).
func after(moment int, fn func()) (stop func()) {
	if moment == 0 {
		go fn()
		return func() {}
	}
	timer := time.AfterFunc(time.Duration(moment)*time.Millisecond/2, fn)
	return func() { timer.Stop() }
}

// d is what a message takes each way: a round trip is 2d, exactly.
const d = kit.Latency

// shown are contexts of a hold: its own, one that Bind made, and a child of each.
func shown(t *testing.T, h *locks.Hold) (all []context.Context) {
	t.Helper()
	bound, cancel := h.Bind(t.Context())
	t.Cleanup(cancel)
	for _, ctx := range []context.Context{h.Context(), bound} {
		child, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		all = append(all, ctx, child)
	}
	return all
}

// assertEnded says of contexts that have not ended which they are.
func assertEnded(t *testing.T, all []context.Context, what string) {
	t.Helper()
	for i, ctx := range all {
		assert.Error(t, ctx.Err(), "%s: %s", what, []string{"own", "child of own", "bound", "child of bound"}[i%4])
	}
}

// endedWhenGiven lets contexts be looked at when the servers have the first request
// that deletes nodes of a session. It returns how often they were.
func endedWhenGiven(t *testing.T, srv *zktest.Server, session int64, all []context.Context) (looked *atomic.Int32) {
	t.Helper()
	synctest.Wait() // what acquiring has left to be done is on its way
	looked = new(atomic.Int32)
	giving := func(r zktest.Request) bool { return r.Op == "delete" || r.Op == "multi" || r.Op == "closeSession" }
	rule := srv.On(zktest.Match{Session: session, Func: giving, Nth: 1}, zktest.Call(func(r zktest.Request) {
		looked.Add(1)
		assertEnded(t, all, r.Op)
	}))
	rule.Fired() // who calls us looks whether it met a request
	return looked
}

// allShown are contexts of a hold and of its members.
func allShown(t *testing.T, h *locks.Hold) []context.Context {
	t.Helper()
	all := shown(t, h)
	for _, m := range h.Members() {
		all = append(all, allShown(t, m)...)
	}
	return all
}
