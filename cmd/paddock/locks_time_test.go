package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// shownLocks are the columns that a program gets.
func shownLocks(t *testing.T, client *framework.Client, path string, older time.Duration) []string {
	t.Helper()
	survey, err := lockview.SurveyOf(t.Context(), client, path, older)
	require.NoError(t, err)
	lines := []string{}
	aged := (&invocation{older: older}).aged(survey.Locks)
	for i := range aged { // to take a lock takes time too
		aged[i].Age, aged[i].Oldest = math.Round(aged[i].Age/10)*10, math.Round(aged[i].Oldest/10)*10
	}
	for line := range strings.Lines(columns(aged)) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

func TestLocksByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		client, other := kit.Connect(t, srv), kit.Connect(t, srv)
		named := func(text string) locks.Option { return locks.NodeData([]byte(text)) }
		pass := func() { time.Sleep(time.Minute) }

		kit.Hold(t, locks.NewInterProcessMutex(client, "/a/old", named("host-1\t\x1b[2J")))
		pass()
		rw := locks.NewInterProcessReadWriteLock(client, "/a/b/rw", named("reader"))
		kit.Hold(t, rw.ReadLock())
		kit.Hold(t, locks.NewInterProcessReadWriteLock(other, "/a/b/rw").ReadLock())
		pass()
		kit.Queue(t, locks.NewInterProcessReadWriteLock(other, "/a/b/rw", named("writer")).WriteLock())
		kit.Queue(t, locks.NewInterProcessMutex(other, "/a/old"))
		pass()
		kit.Hold(t, locks.NewInterProcessSemaphore(client, "/s", 2, named("lease")))
		kit.Hold(t, locks.NewInterProcessSemaphore(other, "/s", 2))
		term, err := leader.NewLatch(client, "/leader", leader.ID("me")).Await(t.Context())
		require.NoError(t, err)
		defer term.Release()
		require.NoError(t, client.EnsurePath(t.Context(), "/a/free"))
		pass()

		assert.Equal(t, []string{
			`240	mutex	/a/old	host-1\t\x1b[2J	1	120`,
			"180	read/write lock	/a/b/rw	reader	1	120",
			"60	latch	/leader	me	0	0",
			"60	semaphore	/s	lease	0	0",
		}, shownLocks(t, client, "/", 0))
		assert.Len(t, shownLocks(t, client, "/", 2*time.Minute), 2)
		assert.Equal(t, []string{"240	mutex	/a/old	host-1\\t\\x1b[2J	1	120"}, shownLocks(t, client, "/a/old", 0), "one lock")
		assert.Equal(t, []string{}, shownLocks(t, client, "/a/free", 0))
		q, err := lockview.Look(t.Context(), client, "/s", 0)
		require.NoError(t, err)
		assert.Len(t, q.Participants, 2, "the servers have removed the queue, which is empty")
		_, err = lockview.SurveyOf(t.Context(), client, "/none", 0)
		require.ErrorIs(t, err, framework.ErrNoNode)
	})
}

// A lock that is given back while locks are listed is not shown as one of unknown age.
func TestLocksGivenBackMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		client, leaves, waits := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
		named := func(text string) locks.Option { return locks.NodeData([]byte(text)) }
		for _, path := range []string{"/l/free", "/l/next"} {
			_, err := locks.NewInterProcessMutex(leaves, path, named("leaves")).Acquire(t.Context())
			require.NoError(t, err)
		}
		next := kit.Acquire(t, locks.NewInterProcessMutex(waits, "/l/next", named("waits")))
		_, err := locks.NewInterProcessSemaphore(leaves, "/l/s", 2).Acquire(t.Context())
		require.NoError(t, err)
		kit.Hold(t, locks.NewInterProcessSemaphore(waits, "/l/s", 2))
		time.Sleep(time.Minute)
		srv.On(zktest.Match{Op: "multiRead", Session: client.SessionID(), Nth: 4}, zktest.Call(func(zktest.Request) { // lists of /l, the locks and the semaphore's folders come before
			assert.NoError(t, srv.ExpireSession(leaves.SessionID()))
		}))
		assert.Equal(t, []string{
			"60	mutex	/l/next	waits	0	0",
			"-	semaphore	/l/s		0	0", // the names do not say which lease is the oldest now
		}, shownLocks(t, client, "/l", 0))
		assert.NoError(t, next.Soon().Release())
	})
}

// Who waits for one of several locks is shown with those that it has.
func TestLocksShowWhatAWaiterHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		client, other := kit.Connect(t, srv), kit.Connect(t, srv)
		both := locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(other, "/a"), locks.NewInterProcessSemaphoreMutex(other, "/b"), locks.NewInterProcessMutex(other, "/c"))
		kit.Hold(t, locks.NewInterProcessSemaphoreMutex(client, "/b"))
		kit.Queue(t, both)
		kit.Queue(t, locks.NewInterProcessMutex(client, "/a"))
		synctest.Wait()
		survey, err := lockview.SurveyOf(t.Context(), client, "/", 0)
		require.NoError(t, err)
		found := make(map[string]lockview.Lock)
		for _, l := range survey.Locks {
			found[l.Path] = l
		}
		assert.Equal(t, []string{"/a", "/c"}, found["/b"].Has)
		assert.Equal(t, []string{"/b"}, found["/b"].Wants)
		assert.Empty(t, found["/a"].Has, "who waits there has nothing")
		assert.Empty(t, found["/b"].HolderWants, "whom all wait for")
		assert.Equal(t, []string{"/b"}, found["/a"].HolderWants)
		assert.Equal(t, []string{"/b"}, found["/c"].HolderWants)
		shown := table(survey.Locks, look{})
		assert.Regexp(t, `^AGE .*OLDEST WAIT +WHICH HAS\n`, shown)
		assert.Regexp(t, `(?m)^\d+s +semaphore +/b .* /a /c$`, shown)
		assert.Regexp(t, `(?m)^\d+s +mutex +/a .*, waits for /b `, shown)
	})
}

// Many nodes are read with each request, so thousands of locks take few requests and round trips.
func TestManyLocksTakeFewRequests(t *testing.T) {
	const many, trip = 3000, 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(trip/2))
		client := kit.Connect(t, srv)
		for i := range many {
			_, err := client.Create(t.Context(), fmt.Sprintf("/l/%04d/%s", i, "lock-0000000000"), nil, framework.Persistent, framework.Parents())
			require.NoError(t, err)
		}
		requests, began := srv.Counters().Received, time.Now()
		survey, err := lockview.SurveyOf(t.Context(), client, "/l", 0)
		require.NoError(t, err)
		assert.Len(t, survey.Locks, many)
		assert.LessOrEqual(t, srv.Counters().Received-requests, int64(2*many/64), "a request has 64 reads at first, and then 128")
		assert.Less(t, time.Since(began), 20*trip)
	})
}

// Replies that are too large for the client are asked for in smaller pages.
func TestLocksWithLargeData(t *testing.T) {
	srv := zktest.Start(t)
	client, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), MaxReply: 64 << 10})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	for i := range 20 {
		_, err := client.Create(t.Context(), fmt.Sprintf("/l/%02d/%s", i, "lock-0000000000"), bytes.Repeat([]byte("x"), 10<<10), framework.Persistent, framework.Parents())
		require.NoError(t, err)
	}
	for _, line := range shownLocks(t, client, "/l", 0) {
		assert.Contains(t, line, "\txxxx")
	}
	require.Len(t, shownLocks(t, client, "/l", 0), 20)
}

func TestTableOfLocks(t *testing.T) {
	all := []lockview.Lock{
		{Path: "/a/rather/long/path/to/a/lock", Kind: lockview.Mutex, Holder: []byte("host-1.example.org pid 4711"), Age: 240, Since: time.Unix(1, 0), Holds: 1, Waits: 12, Oldest: 61},
		{Path: "/b", Kind: lockview.Latch, Age: 3.25, Since: time.Unix(1, 0), Holds: 1},
		{Path: "/c", Kind: lockview.Semaphore, Holder: []byte("x"), Holds: 3, Waits: 1, Oldest: 2},
	}
	assert.Equal(t, `AGE   KIND       PATH                           HOLDER                       WAIT  OLDEST WAIT
4m0s  mutex      /a/rather/long/path/to/a/lock  host-1.example.org pid 4711  12    1m1s
3.2s  latch      /b                                                          0
?     semaphore  /c                             x and 2 more                 1     2s
`, table(all, look{}))
	narrow := table(all, look{width: 70, colours: true})
	assert.Contains(t, narrow, red+"4m0s  mutex      /a/rather…/to/a/lock  host-…d 4711  12    1m1s"+plain)
	assert.Contains(t, narrow, yellow+"?  ")
	for line := range strings.Lines(narrow) {
		line = strings.NewReplacer(bold, "", red, "", yellow, "", plain, "", "\n", "").Replace(line)
		assert.LessOrEqual(t, len([]rune(line)), 70)
	}
}

func TestLocksOfACommandLine(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	kit.Hold(t, locks.NewInterProcessMutex(client, "/l/a", locks.NodeData([]byte("me"))))
	one := decode[struct {
		Path  string
		Holds int
	}](t, s.ok(t, "locks", "/l", "--json"))
	assert.Equal(t, "/l/a", one.Path)
	assert.Equal(t, 1, one.Holds)
	assert.Equal(t, "0\tmutex\t/l/a\tme\t0\t0\n", s.ok(t, "locks"))
	assert.Empty(t, s.ok(t, "locks", "--older", "1h"))
	for args, says := range map[string]string{
		"locks --watch":        "--watch needs a terminal",
		"locks --watch --json": "--watch and --json exclude each other",
		"locks --older -1s":    "--older is -1s: it must not be negative",
		"who /l --older 1s":    "--older is no flag of who",
	} {
		code, _, errs := s.run(t, strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, errs, says)
	}
	code, _, _ := s.run(t, "locks", "/none")
	assert.Equal(t, exitNotFound, code)
}
