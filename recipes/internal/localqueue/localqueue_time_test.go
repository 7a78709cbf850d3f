package localqueue

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	queues = Queues[string, int, string]
	queue  = Queue[string, int, string]
	waiter = Waiter[string, int, string]
)

func join(t *testing.T, qs *queues, who string) *waiter {
	t.Helper()
	_, w, _ := qs.Join("/l", who, true)
	require.NotNil(t, w)
	return w
}

// asked is what a waiter has been told, without waiting.
func asked(t *testing.T, w *waiter) (told Told, value int, answered bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	told, value = w.Await(ctx)
	return told, value, told != TimeUp
}

func TestTurn(t *testing.T) {
	qs := new(queues)
	q, w, _ := qs.Join("/l", "a", true)
	require.NotNil(t, q)
	require.Nil(t, w, "the first one has the turn")
	q.Set(1)
	none, w, has := qs.Join("/l", "nobody", false)
	assert.Nil(t, none)
	assert.Nil(t, w)
	assert.Equal(t, 1, has)
	b, c, d := join(t, qs, "b"), join(t, qs, "c"), join(t, qs, "d")
	var waits []string
	qs.Each(func(who string, _ time.Time) { waits = append(waits, who) })
	assert.Equal(t, []string{"b", "c", "d"}, waits)

	assert.False(t, q.Pass(2, nil), "it has 1")
	assert.False(t, q.Leave(2, 3))
	assert.False(t, q.Pass(1, func(next string) (int, bool) { return 2, next != "b" }), "refused")
	assert.Equal(t, 1, q.Has(), "the turn goes on")
	assert.True(t, q.Pass(1, func(string) (int, bool) { return 2, true }))
	told, value := b.Await(t.Context())
	assert.Equal(t, Turn, told)
	assert.Equal(t, 2, value)
	assert.Equal(t, 2, q.Has())

	assert.True(t, q.Leave(2, 3))
	told, value = c.Await(t.Context())
	assert.Equal(t, Turn, told)
	assert.Equal(t, 3, value)
	_, value, answered := asked(t, d)
	assert.False(t, answered)
	assert.Equal(t, 1, value, "what there was when it came")
	assert.False(t, q.Pass(3, nil), "nobody waits")
	assert.False(t, q.Leave(3, 4))
	assert.Empty(t, qs.all)
	assert.False(t, q.Leave(3, 4), "it is over")
	next, w, _ := qs.Join("/l", "e", true)
	assert.NotSame(t, q, next)
	assert.Nil(t, w)
	assert.False(t, q.Pass(4, nil))
	assert.Same(t, next, qs.all["/l"])
}

func TestBeside(t *testing.T) {
	qs := new(queues)
	q, _, _ := qs.Join("/l", "a", true)
	all := []*waiter{join(t, qs, "b"), join(t, qs, "c"), join(t, qs, "d")}
	q.Spread(1)
	told, _ := all[0].Await(t.Context())
	assert.Equal(t, Beside, told)
	q.BesideOver()
	told, _ = all[1].Await(t.Context())
	assert.Equal(t, Beside, told)
	q.Spread(0)
	q.BesideOver()
	assert.True(t, q.Leave(0, 0))
	told, _ = all[2].Await(t.Context())
	assert.Equal(t, Turn, told, "nobody else goes on beside the queue")
	q.Spread(1)
	told, _ = join(t, qs, "e").Await(t.Context())
	assert.Equal(t, Beside, told, "nor waits any more")
	assert.False(t, q.Leave(0, 0))
	q.BesideOver()
}

func TestNoQueue(t *testing.T) {
	var q *queue
	q.Set(1)
	q.Spread(1)
	assert.False(t, q.Pass(0, nil))
	assert.False(t, q.Leave(0, 0))
}

// Goroutines come, give up, have their turn, refuse to pass it on, and go beside the queue, in
// random orders. At most one has the turn, each is told something, and nothing is left.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			qs := new(queues)
			var inside atomic.Int32
			var made atomic.Int64
			var wg sync.WaitGroup
			for i := range 30 {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				some := func() time.Duration { return time.Duration(1 + r.IntN(20)) }
				wg.Go(func() {
					time.Sleep(some())
					ctx := t.Context()
					if r.IntN(2) == 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, some())
						defer cancel()
					}
					q, w, value := qs.Join("/l", "", r.IntN(8) > 0)
					if q == nil {
						return
					}
					told := Turn
					if w != nil {
						told, value = w.Await(ctx)
					}
					switch told {
					case TimeUp:
						assert.Error(t, ctx.Err())
						return
					case Beside:
						qs.mu.Lock()
						assert.Contains(t, []int{1, 2}, q.beside)
						qs.mu.Unlock()
						time.Sleep(some())
						q.BesideOver()
						return
					}
					assert.Equal(t, int32(1), inside.Add(1), "alone")
					assert.Equal(t, value, q.Has())
					if r.IntN(3) == 0 {
						q.Spread(r.IntN(3))
					}
					time.Sleep(some())
					value = int(made.Add(1))
					q.Set(value)
					time.Sleep(some())
					inside.Add(-1)
					passed := q.Pass(value, func(string) (int, bool) { return int(made.Add(1)), r.IntN(4) > 0 })
					if left := q.Leave(value, 0); passed {
						assert.False(t, left, "it has no turn to leave")
					}
				})
			}
			wg.Wait()
			assert.Empty(t, qs.all)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
