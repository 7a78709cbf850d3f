package transcript

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

const (
	latency = 5 * time.Millisecond // each way
	settled = time.Second / 2      // by then all is sent that follows from a step
	longest = 5 * time.Minute      // that a situation takes, or nothing comes of it any more
)

// world is a server, its clients, and the steps of what they do. It lives in a
// bubble.
type world struct {
	*testing.T
	ctx     context.Context // of whatever is waited for
	srv     *zktest.Server
	begun   time.Time
	clients []*client
	opened  int                // connections
	whose   map[string]*client // by the names of connections and sessions in the server's transcript
	steps   []*step
}

// step is something that is done and what follows from it.
type step struct {
	title      string
	begin, end time.Duration
	took       time.Duration // what was done, without what follows from it
	timeless   bool          // when things happen is drawn at random
	concurrent bool          // goroutines of a client send something at one instant
}

// play lets a situation happen in a bubble and returns what was said.
func play(t *testing.T, situation func(w *world)) (all []*exchange) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		w := &world{T: t, ctx: ctx, begun: time.Now(), whose: make(map[string]*client)}
		w.srv = zktest.Start(t, zktest.InMemory(), zktest.Transcript(), zktest.Latency(latency), zktest.SessionTimeouts(time.Second, time.Hour))
		situation(w)
		all = w.exchanges()
	})
	return all
}

// connect makes a client. Its session lasts so long that nothing is sent to keep
// it, unless the situation is about that.
func (w *world) connect(name string, change ...func(*framework.Config)) *client {
	// Clients that are woken at one instant go on one after the other.
	c := &client{name: name, begun: w.begun, slow: time.Duration(len(w.clients)) * 10 * time.Microsecond}
	cfg := framework.Config{
		ConnectString:  w.srv.ConnectString(),
		SessionTimeout: time.Hour,
		DefaultData:    []byte(name),
		DialContext: c.recording(w.srv.DialContext, func() int {
			w.opened++
			w.whose[fmt.Sprint("conn ", w.opened)] = c
			return w.opened
		}),
	}
	for _, fn := range change {
		fn(&cfg)
	}
	var err error
	c.Client, err = framework.Connect(w.ctx, cfg)
	require.NoError(w, err)
	w.Cleanup(func() { _ = c.Close() })
	w.clients = append(w.clients, c)
	w.whose[fmt.Sprintf("%#x", c.SessionID())] = c
	return c
}

// ensure makes nodes, so that a lock finds its parents.
func (w *world) ensure(c *client, paths ...string) {
	for _, path := range paths {
		require.NoError(w, c.EnsurePath(w.ctx, path))
	}
}

// step does something and waits until all is done that follows from it. Messages
// before it, which make things ready, are no part of the transcript.
func (w *world) step(title string, do func()) *step {
	if len(w.steps) == 0 || w.steps[len(w.steps)-1].end != time.Since(w.begun) { // something was done before it
		w.settle()
	}
	s := &step{title: title, begin: time.Since(w.begun)}
	do()
	s.took = time.Since(w.begun) - s.begin
	w.settle()
	s.end = time.Since(w.begun)
	w.steps = append(w.steps, s)
	return s
}

// settle waits until nothing is under way, at a whole second.
func (w *world) settle() {
	time.Sleep(settled)
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	synctest.Wait()
}

func (w *world) acquire(lock locks.Lock) *locks.Hold {
	h, err := lock.Acquire(w.ctx)
	require.NoError(w, err)
	return h
}

// holding is acquire before a step: all is done that follows from it.
func (w *world) holding(lock locks.Lock) *locks.Hold {
	h := w.acquire(lock)
	w.settle()
	return h
}

func (w *world) acquireUnder(hold *locks.Hold, lock locks.Lock) *locks.Hold {
	h, err := lock.Acquire(hold.Context())
	require.NoError(w, err)
	return h
}

// several is a number of leases as one lock.
type several struct {
	*locks.InterProcessSemaphore
	n int
}

func (s several) Acquire(ctx context.Context) (*locks.Hold, error) { return s.AcquireN(ctx, s.n) }

// grant is what comes of an acquisition.
type grant struct {
	hold *locks.Hold
	err  error
}

// acquiring is acquire for a caller that may have to wait.
func (w *world) acquiring(lock locks.Lock) <-chan grant { return w.acquiringWith(w.ctx, lock) }

func (w *world) acquiringWith(ctx context.Context, lock locks.Lock) <-chan grant {
	got := make(chan grant, 1)
	go func() {
		h, err := lock.Acquire(ctx)
		got <- grant{h, err}
	}()
	return got
}

// granted waits for what was asked for.
func (w *world) granted(got <-chan grant) *locks.Hold {
	one := <-got
	require.NoError(w, one.err)
	return one.hold
}

// await waits until something has happened.
func (w *world) await(happened <-chan struct{}) {
	select {
	case <-happened:
	case <-w.ctx.Done():
		require.NoError(w, w.ctx.Err())
	}
}

func (w *world) release(h *locks.Hold) { require.NoError(w, h.Release()) }
