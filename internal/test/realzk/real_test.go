//go:build realzk && unix

package realzk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
)

const enough = 30 * time.Second // for anything a server does, on a busy machine

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	t.Cleanup(cancel)
	return ctx
}

// client is a session and the events of its connection.
type client struct {
	*zk.Conn
	events <-chan zk.Event
	// away is whether it makes no connections. A server that is starting may leave one without
	// an answer, and the library waits for that for longer than its session lasts.
	away atomic.Bool
}

// connect opens a session with one of the addresses.
func connect(t *testing.T, timeout time.Duration, addrs ...string) *client {
	t.Helper()
	c, events := new(client), make(chan zk.Event, 1000) // the library's own holds six, and it drops what is more
	conn, _, err := zk.Connect(addrs, timeout, zk.WithLogInfo(false), zk.WithLogger(silentLog{}), zk.WithEventCallback(func(e zk.Event) { events <- e }),
		zk.WithDialer(func(network, addr string, timeout time.Duration) (net.Conn, error) {
			if c.away.Load() {
				return nil, errors.New("away")
			}
			return net.DialTimeout(network, addr, timeout) //nolint:noctx // as the library does
		}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	c.Conn, c.events = conn, events
	c.await(t, zk.StateHasSession)
	return c
}

type silentLog struct{}

func (silentLog) Printf(string, ...any) {}

// await returns once the connection has come into a state.
func (c *client) await(t *testing.T, state zk.State) {
	t.Helper()
	timer := time.NewTimer(enough)
	defer timer.Stop()
	for {
		select {
		case e := <-c.events:
			if e.Type == zk.EventSession && e.State == state {
				return
			}
		case <-timer.C:
			require.Fail(t, "no state "+state.String())
		}
	}
}

func (c *client) ephemeral(t *testing.T, path string) {
	t.Helper()
	_, err := c.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

func TestStandalone(t *testing.T) {
	began := time.Now()
	e := StartT(t, Options{})
	t.Logf("standalone server serves after %v", time.Since(began).Round(time.Millisecond))
	ctx := within(t)
	require.Len(t, e.Addrs(), 1)

	version, err := e.Version(ctx)
	require.NoError(t, err)
	assert.Regexp(t, `^3\.\d+\.\d+$`, version)
	t.Logf("ZooKeeper %s", version)
	mode, err := e.Mode(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, "standalone", mode)

	c := connect(t, 20*defaultTick, e.Addrs()...) // the longest that there is
	c.ephemeral(t, "/mine")
	id := c.SessionID()

	member, err := e.MemberOf(ctx, id)
	require.NoError(t, err)
	assert.Equal(t, 0, member)
	_, err = e.MemberOf(ctx, id+1)
	require.ErrorIs(t, err, ErrNotConnected)
	sessions, err := e.Sessions(ctx)
	require.NoError(t, err)
	assert.Equal(t, []int64{id}, sessions)
	ephemerals, err := e.Ephemerals(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[int64][]string{id: {"/mine"}}, ephemerals)

	// Not by c, which will reconnect: go-zookeeper has a data race there if
	// watches are set.
	watcher := connect(t, 4*time.Second, e.Addrs()...)
	_, _, _, err = watcher.GetW("/mine")
	require.NoError(t, err)
	_, _, _, err = watcher.ChildrenW("/")
	require.NoError(t, err)
	watches, err := e.Watches(ctx)
	require.NoError(t, err)
	assert.Equal(t, map[string][]int64{"/mine": {watcher.SessionID()}}, watches)
	count, err := e.WatchCount(ctx)
	require.NoError(t, err)
	assert.Equal(t, 2, count, "the one on children included")
	watcher.Close()

	restart := func() {
		c.away.Store(true)
		require.NoError(t, e.Restart(ctx, 0))
		require.NoError(t, e.AwaitServing(ctx))
		c.away.Store(false)
		c.await(t, zk.StateHasSession)
	}
	require.NoError(t, e.Stop(ctx, 0))
	c.await(t, zk.StateDisconnected)
	require.ErrorIs(t, e.Kill(0), ErrNotRunning)
	_, err = e.Leader(ctx)
	require.ErrorIs(t, err, ErrNoLeader)
	restart()
	assert.Equal(t, id, c.SessionID(), "the session outlives the restart")

	restart() // of a running server
	_, _, err = c.Get("/mine")
	require.NoError(t, err)
	require.ErrorContains(t, e.Partition(0), "Options.Partitions")
}

// A server of another Debian must not be a mixture of it and of what is
// installed, which the manifests of its jars name.
func TestServersLoadTheirOwnJars(t *testing.T) {
	in, err := Find("")
	require.NoError(t, err)
	folders := make(map[string]bool)
	for _, entry := range filepath.SplitList(in.ClassPath) {
		folders[filepath.Dir(entry)] = true
	}
	log := filepath.Join(t.TempDir(), "classes")
	e := StartT(t, Options{JVMArgs: []string{"-Xlog:class+load:file=" + log}})
	c := connect(t, 4*time.Second, e.Addrs()...)
	c.ephemeral(t, "/mine")
	require.NoError(t, e.Close())
	classes, err := os.ReadFile(log)
	require.NoError(t, err)
	loaded := 0
	for line := range strings.Lines(string(classes)) {
		_, file, ok := strings.Cut(strings.TrimSpace(line), " source: file:")
		if !ok {
			continue // of Java itself
		}
		loaded++
		assert.True(t, folders[filepath.Dir(file)], "%s", line)
	}
	assert.Greater(t, loaded, 100)
	t.Logf("%d classes", loaded)
}

// Lists that nobody has signed are refused.
func TestFetchRefusesUnsignedLists(t *testing.T) {
	mirror := t.TempDir()
	suite := filepath.Join(mirror, "dists", "trixie")
	require.NoError(t, os.MkdirAll(filepath.Join(suite, "main", "binary-all"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(suite, "main", "binary-all", "Packages"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(suite, "Release"), []byte("Suite: trixie\nCodename: trixie\nComponents: main\nArchitectures: all\n"), 0o644))
	t.Setenv(cacheVar, t.TempDir())
	t.Setenv(mirrorVar, "file://"+mirror)
	_, err := Fetch(within(t), "trixie")
	require.ErrorContains(t, err, "is not signed")
	_, err = Find("trixie")
	require.ErrorIs(t, err, ErrNotInstalled)
}

func TestEnsembleLosesMembers(t *testing.T) {
	began := time.Now()
	e := StartT(t, Options{Servers: 3, SyncLimit: 5})
	t.Logf("three servers serve after %v", time.Since(began).Round(time.Millisecond))
	ctx := within(t)
	first, err := e.Leader(ctx)
	require.NoError(t, err)

	c := connect(t, 20*defaultTick, e.Addr(first))
	c.ephemeral(t, "/mine")
	require.NoError(t, e.Kill(first))
	c.await(t, zk.StateDisconnected)
	second := -1
	kit.Until(t, "another leader", func() bool {
		second, err = e.Leader(ctx)
		return err == nil
	})
	assert.NotEqual(t, first, second)
	sessions, err := e.Sessions(ctx)
	require.NoError(t, err)
	assert.Equal(t, []int64{c.SessionID()}, sessions, "the session waits for its client")
	c.away.Store(true)
	require.NoError(t, e.Restart(ctx, first))
	require.NoError(t, e.AwaitServing(ctx))
	c.away.Store(false)
	c.await(t, zk.StateHasSession)
	mode, err := e.Mode(ctx, first)
	require.NoError(t, err)
	assert.Equal(t, "follower", mode)

	// Paused, the leader is deposed, finds that out when it may go on, and follows.
	require.NoError(t, e.Pause(second))
	kit.Until(t, "a third leader", func() bool {
		third, err := e.Leader(ctx)
		return err == nil && third != second
	})
	require.NoError(t, e.Resume(second))
	kit.Until(t, "the deposed leader follows", func() bool {
		mode, err := e.Mode(ctx, second)
		return err == nil && mode == "follower"
	})

	// Without a majority nobody serves.
	for i := range 2 {
		require.NoError(t, e.Kill(i))
	}
	kit.Until(t, "the last one stops", func() bool {
		mode, err := e.Mode(ctx, 2)
		return err == nil && mode == ""
	})
	for i := range 2 {
		require.NoError(t, e.Restart(ctx, i))
	}
	require.NoError(t, e.AwaitServing(ctx))
}

func TestCutOffLeaderIsDeposed(t *testing.T) {
	e := StartT(t, Options{Servers: 3, Partitions: true})
	ctx := within(t)
	old, err := e.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, e.Partition(old))
	cut := time.Now()
	next := -1
	kit.Until(t, "the others elect", func() bool {
		next, err = e.Leader(ctx)
		return err == nil && next != old
	})
	t.Logf("another leader %v after the cut", time.Since(cut).Round(time.Millisecond))
	kit.Until(t, "the old leader stops serving", func() bool {
		mode, err := e.Mode(ctx, old)
		return err == nil && mode == ""
	})
	c := connect(t, 4*time.Second, e.Addr(next))
	c.ephemeral(t, "/while-cut")

	// The cut holds against every way around it: the old leader asks for
	// votes all the time, and stays alone.
	err = poll(shortly(t, 3*time.Second), func() (bool, error) {
		mode, err := e.Mode(ctx, old)
		return err == nil && mode != "", nil
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	// Cut in two places and mended in one, it remains cut.
	require.NoError(t, e.Partition((old+1)%3))
	require.NoError(t, e.Heal(old))
	require.NoError(t, e.Heal((old+1)%3))
	require.NoError(t, e.AwaitServing(ctx))
	mode, err := e.Mode(ctx, old)
	require.NoError(t, err)
	assert.NotEmpty(t, mode)
	d := connect(t, 4*time.Second, e.Addr(old))
	_, err = d.Sync("/while-cut")
	require.NoError(t, err)
	_, _, err = d.Get("/while-cut")
	require.NoError(t, err)
}

func shortly(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Members reach each other through the harness only: each connection to a
// quorum or election port comes from this process.
func TestNoConnectionAvoidsTheLinks(t *testing.T) {
	for range 3 { // who calls whom back is a matter of who comes first
		e := StartT(t, Options{Servers: 3, Partitions: true})
		inside := make(map[string]bool) // ports between members, in hexadecimal
		for _, p := range e.ports.members {
			inside[fmt.Sprintf("%04X", p.quorum)] = true
			inside[fmt.Sprintf("%04X", p.election)] = true
		}
		ours := make(map[string]bool)
		fds, err := filepath.Glob("/proc/self/fd/*")
		require.NoError(t, err)
		for _, fd := range fds {
			if name, err := os.Readlink(fd); err == nil {
				ours[name] = true
			}
		}
		table, err := os.ReadFile("/proc/self/net/tcp")
		require.NoError(t, err)
		seen := 0
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			const remote, state, inode, established = 2, 3, 9, "01"
			_, port, _ := strings.Cut(f[remote], ":")
			if f[state] != established || !inside[port] {
				continue
			}
			seen++
			assert.True(t, ours["socket:["+f[inode]+"]"], "somebody else's connection: %s", line)
		}
		assert.GreaterOrEqual(t, seen, 5, "three for elections, two of followers")
		require.NoError(t, e.Close())
	}
}

func TestRestartOfCutOffMember(t *testing.T) {
	e := StartT(t, Options{Servers: 3, Partitions: true, ReadOnlyMode: true})
	ctx := within(t)
	leader, err := e.Leader(ctx)
	require.NoError(t, err)
	follower := (leader + 1) % 3
	require.NoError(t, e.Partition(follower))
	require.NoError(t, e.Restart(ctx, follower))
	kit.Until(t, "it serves readers", func() bool {
		mode, err := e.Mode(ctx, follower)
		return err == nil && mode == "read-only"
	})
	require.NoError(t, e.Heal(follower))
	require.NoError(t, e.AwaitServing(ctx, follower))
}

func TestStartAfterBindClash(t *testing.T) {
	tries := 0
	blocked := func(n int) (*portBlock, error) {
		block, err := findPorts(n)
		if tries++; err != nil || tries > 2 {
			return block, err
		}
		port := block.members[0].client
		if tries == 2 {
			port = block.members[0].election
		}
		ln, err := listen(port)
		if err == nil {
			t.Cleanup(func() { _ = ln.Close() })
		}
		return block, err
	}
	e := StartT(t, Options{Servers: 3, findPorts: blocked})
	assert.Equal(t, 3, tries)
	require.NoError(t, e.AwaitServing(within(t)))
}

func TestStartFails(t *testing.T) {
	parent := t.TempDir()
	_, err := Start(within(t), Options{Dir: parent, Properties: map[string]string{"tickTime": "soon"}})
	require.ErrorIs(t, err, ErrNotRunning)
	require.ErrorContains(t, err, `For input string: "soon"`, "the server's log")

	_, err = Start(within(t), Options{Dir: parent, JVMArgs: []string{"-Xnonsense"}})
	require.ErrorContains(t, err, "Unrecognized option: -Xnonsense")

	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	defer cancel()
	_, err = Start(ctx, Options{Dir: parent, Servers: 3})
	require.ErrorIs(t, err, late)

	t.Setenv("ZK_SUITE", "")
	t.Setenv("ZK_CLASSPATH", parent+"/none.jar")
	_, err = Start(within(t), Options{Dir: parent})
	require.ErrorIs(t, err, ErrNotInstalled)

	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing stays behind")
}

func TestCloseWhileInUse(t *testing.T) {
	e, err := Start(within(t), Options{Servers: 3, Partitions: true})
	require.NoError(t, err)
	ctx := within(t)
	var wg sync.WaitGroup
	for i := range e.Size() {
		for _, use := range []func() error{
			func() error { return e.Restart(ctx, i) },
			func() error { return errors.Join(e.Pause(i), e.Resume(i)) },
			func() error { return errors.Join(e.Partition(i), e.Heal(i)) },
			func() error { _, err := e.Watches(ctx); return err },
			func() error { _, err := e.Leader(ctx); return err },
		} {
			wg.Go(func() {
				for e.life.Err() == nil {
					_ = use()
				}
			})
		}
	}
	require.ErrorIs(t, poll(shortly(t, 2*time.Second), func() (bool, error) { return false, nil }), context.DeadlineExceeded)
	for range 3 {
		wg.Go(func() { assert.NoError(t, e.Close()) })
	}
	wg.Wait()
	assert.NoDirExists(t, e.Dir())
	for i := range e.Size() {
		require.ErrorIs(t, e.Kill(i), ErrClosed)
		require.ErrorIs(t, e.Restart(ctx, i), ErrClosed)
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp4", e.Addr(i))
		if !assert.Error(t, err) {
			_ = conn.Close()
		}
	}
	_, err = e.Watches(ctx)
	require.ErrorIs(t, err, ErrClosed)
}

func init() {
	serveUntilKilled = func() {
		e, err := Start(context.Background(), Options{Servers: 3, Partitions: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = e.Pause(1)
		for _, m := range e.members {
			fmt.Println(m.process().cmd.Process.Pid)
		}
		fmt.Println(e.Dir())
		select {}
	}
}

// Servers, a paused one among them, die with the process that started them,
// even if that is killed, and the next start removes their data.
func TestDeathOfTheProcess(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), mortal+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	var pids []int
	for range 3 {
		require.True(t, lines.Scan(), "a line of output")
		pid, err := strconv.Atoi(lines.Text())
		require.NoError(t, err, "%s", lines.Text())
		pids = append(pids, pid)
	}
	require.True(t, lines.Scan())
	dir := lines.Text()
	assert.DirExists(t, dir)
	for _, pid := range pids {
		assert.True(t, runs(pid), "server %d", pid)
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	kit.Until(t, "the servers die", func() bool { return !slices.ContainsFunc(pids, runs) })
	assert.DirExists(t, dir)
	StartT(t, Options{})
	assert.NoDirExists(t, dir)
}

// runs tells whether a process exists and is not a zombie, whose reaping is
// up to the system's first process.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
