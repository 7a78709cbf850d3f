package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// asCommand is the variable that makes the test binary the command.
const asCommand = "PADDOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" || len(os.Args) == 2 && os.Args[1] == guardVerb {
		main()
	}
	goleak.VerifyTestMain(m)
}

// shell runs the command against one server.
type shell struct {
	*zktest.Server
	env map[string]string
}

func newShell(t *testing.T, opts ...zktest.Option) *shell {
	t.Helper()
	srv := zktest.Start(t, opts...)
	return &shell{srv, map[string]string{"PADDOCK_SERVERS": srv.ConnectString()}}
}

// run returns the exit code and what was printed.
func (s *shell) run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, system{in: strings.NewReader(""), out: &o, err: &e, getenv: func(k string) string { return s.env[k] }})
	return code, o.String(), e.String()
}

// ok returns what was printed by a run that has to succeed.
func (s *shell) ok(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := s.run(t, args...)
	require.Equal(t, 0, code, "%v: %s", args, errs)
	return out
}

func (s *shell) client(t *testing.T) *framework.Client {
	t.Helper()
	return kit.Connect(t, s)
}

// wait queues for a lock, and returns when n nodes stand below a path.
func (s *shell) wait(t *testing.T, lock locks.Lock, path string, n int) {
	t.Helper()
	kit.Queue(t, lock)
	limited, stop := context.WithTimeout(t.Context(), kit.Patience)
	defer stop()
	require.NoError(t, s.WaitChildren(limited, path, n))
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

type shownQueue struct {
	Path, Kind   string
	Participants []struct {
		Node, Data, Side, Session, Behind, Owner string
		Holds, Multilock                         bool
		Token                                    int64
		Since                                    time.Time
		Age                                      float64 `json:"age_seconds"`
	}
}

func TestWhoOfAMutex(t *testing.T) {
	s := newShell(t)
	first, second := s.client(t), s.client(t)
	held := kit.Hold(t, locks.NewInterProcessMutex(first, "/locks/orders", locks.NodeData([]byte("orders-1 \x1b[2Jpid 7"))))
	s.wait(t, locks.NewInterProcessMutex(second, "/locks/orders", locks.NodeData([]byte("orders-2"))), "/locks/orders", 2)

	q := decode[shownQueue](t, s.ok(t, "who", "/locks/orders", "--json"))
	require.Len(t, q.Participants, 2)
	assert.Equal(t, "mutex", q.Kind)
	holder, waiter := q.Participants[0], q.Participants[1]
	assert.True(t, holder.Holds)
	assert.False(t, waiter.Holds)
	assert.Equal(t, held.Path(), holder.Node)
	assert.Equal(t, held.FencingToken(), holder.Token)
	assert.Equal(t, "orders-1 \x1b[2Jpid 7", holder.Data)
	assert.Equal(t, fmt.Sprintf("%#x", first.SessionID()), holder.Session)
	assert.Equal(t, holder.Node, waiter.Behind)
	assert.WithinDuration(t, time.Now(), holder.Since, time.Minute)

	out := s.ok(t, "--timeout", "5s", "who", "/locks/orders/")
	assert.Contains(t, out, "/locks/orders: mutex\n1. holds  orders-1 \\x1b[2Jpid 7\n")
	assert.Contains(t, out, "2. waits behind 1  orders-2\n")
	assert.NotContains(t, out, "\x1b", "a terminal would obey it")
}

func TestWhoOfOtherKinds(t *testing.T) {
	s := newShell(t)
	client, other := s.client(t), s.client(t)
	rw := locks.NewInterProcessReadWriteLock(client, "/rw")
	kit.Hold(t, rw.ReadLock())
	s.wait(t, rw.WriteLock(), "/rw", 2)
	s.wait(t, locks.NewInterProcessReadWriteLock(other, "/rw").ReadLock(), "/rw", 3)
	q := decode[shownQueue](t, s.ok(t, "who", "--json", "/rw"))
	require.Len(t, q.Participants, 3)
	assert.Equal(t, "read/write lock", q.Kind)
	assert.Equal(t, []string{"read", "write", "read"}, []string{q.Participants[0].Side, q.Participants[1].Side, q.Participants[2].Side})
	assert.Equal(t, q.Participants[0].Node, q.Participants[1].Behind)
	assert.Equal(t, q.Participants[1].Node, q.Participants[2].Behind, "a reader waits for the writer ahead")

	kit.Hold(t, locks.NewInterProcessSemaphore(client, "/sem", 2))
	kit.Hold(t, locks.NewInterProcessSemaphore(client, "/sem", 2))
	s.wait(t, locks.NewInterProcessSemaphore(other, "/sem", 2), "/sem/locks", 1)
	q = decode[shownQueue](t, s.ok(t, "who", "--json", "--semaphore", "2", "/sem"))
	assert.Equal(t, "semaphore", q.Kind)
	holds := 0
	for _, p := range q.Participants {
		if p.Holds {
			holds++
		}
	}
	assert.Equal(t, 2, holds)
	assert.Contains(t, s.ok(t, "who", "/sem"), "--semaphore N")

	term, err := leader.NewLatch(client, "/election", leader.ID("node-a")).Await(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = term.Release() })
	q = decode[shownQueue](t, s.ok(t, "who", "--json", "/election"))
	require.Len(t, q.Participants, 1)
	assert.Equal(t, "latch", q.Kind)
	assert.Equal(t, "node-a", q.Participants[0].Data)
	assert.Equal(t, term.Number(), q.Participants[0].Token)
	assert.Contains(t, s.ok(t, "who", "/election"), "1. leads  node-a\n")

	kit.Hold(t, locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(client, "/a"), locks.NewInterProcessMutex(client, "/b")))
	a, b := decode[shownQueue](t, s.ok(t, "who", "--json", "/a")), decode[shownQueue](t, s.ok(t, "who", "--json", "/b"))
	assert.True(t, a.Participants[0].Multilock)
	assert.NotEmpty(t, a.Participants[0].Owner)
	assert.Equal(t, a.Participants[0].Owner, b.Participants[0].Owner, "the members of one owner")
	assert.Contains(t, s.ok(t, "who", "/a"), "a MultiLock's member, of owner "+a.Participants[0].Owner)

	outer := kit.Hold(t, locks.NewInterProcessMutex(client, "/nest/m"))
	for path, says := range map[string]string{"/nest/z": "with other locks, of owner ", "/nest/a": "with a lock at a later path, of owner "} {
		inner, err := locks.NewInterProcessMutex(client, path).Acquire(outer.Context())
		require.NoError(t, err)
		assert.Contains(t, s.ok(t, "who", path), says)
		require.NoError(t, inner.Release())
	}
	assert.NotContains(t, s.ok(t, "who", "/nest/m"), "of owner")
}

func TestWhoOfWhatIsNoQueue(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	for _, path := range []string{"/plain/child", "/mixed/x-lock-0000000001", "/mixed/latch-0000000002", "/kazoo/1__lock__0000000001"} {
		_, err := client.Create(t.Context(), path, nil, framework.Persistent, framework.Parents())
		require.NoError(t, err)
	}
	code, _, errs := s.run(t, "who", "/nowhere")
	assert.Equal(t, exitNotFound, code)
	assert.Contains(t, errs, "nobody has taken this lock")
	assert.Equal(t, "/plain: no participants, so the kind is not known\nnodes below it: 1; paddock tree shows the locks among them\n", s.ok(t, "who", "/plain"))
	assert.NotContains(t, s.ok(t, "who", "/plain/child"), "below")
	code, _, errs = s.run(t, "who", "/mixed")
	assert.Equal(t, exitNoLock, code)
	assert.Contains(t, errs, "of a latch and of a mutex")
	code, _, errs = s.run(t, "who", "/kazoo")
	assert.Equal(t, exitNoLock, code)
	assert.Contains(t, errs, "of a kazoo lock")
}

// Logs have paths in full. Below a chroot or a namespace that would be another path.
func TestThePathOfALog(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	require.NoError(t, client.EnsurePath(t.Context(), "/shop/eu"))
	kit.Hold(t, locks.NewInterProcessMutex(client, "/shop/eu/orders"))
	servers := s.env["PADDOCK_SERVERS"]
	for _, tc := range []struct{ chroot, namespace, says string }{
		{"/shop", "", "below the chroot /shop: try /eu/orders"},
		{"", "shop", "below the namespace /shop: try /eu/orders"},
		{"/shop", "eu", "below the chroot and the namespace /shop/eu: try /orders"},
		{"/shop/eu", "", "below the chroot /shop/eu: try /orders"},
	} {
		s.env = map[string]string{"PADDOCK_SERVERS": servers + tc.chroot, "PADDOCK_NAMESPACE": tc.namespace}
		for _, verb := range []string{"who", "get", "ls"} {
			code, _, errs := s.run(t, verb, "/shop/eu/orders")
			assert.Equal(t, exitNotFound, code)
			assert.Contains(t, errs, tc.says)
			assert.NotContains(t, errs, "nobody has taken")
		}
		_, path, _ := strings.Cut(tc.says, "try ")
		assert.Contains(t, s.ok(t, "who", path), "holds")
	}
	code, _, errs := s.run(t, "who", "/shopping")
	assert.Equal(t, exitNotFound, code)
	assert.NotContains(t, errs, "try")
}

func TestTreeLsGet(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	kit.Hold(t, locks.NewInterProcessMutex(client, "/app/locks/orders", locks.NodeData([]byte("me\x1b"))))
	kit.Hold(t, locks.NewInterProcessSemaphoreMutex(client, "/app/locks/single"))
	_, err := client.Create(t.Context(), "/app/config", []byte("a\x1bb\n"), framework.Persistent)
	require.NoError(t, err)

	assert.Regexp(t, `^/app\n  config\n  locks\n    orders  mutex: 1 hold, 0 wait, for \S+s: me\\x1b\n    single  semaphore: 1 hold, 0 wait, for \S+s: 127.0.0.1\n$`, s.ok(t, "tree", "/app"))
	assert.Equal(t, "/app\n", s.ok(t, "tree", "--depth", "0", "/app"))
	assert.Equal(t, "/app\n  config\n  locks\n", s.ok(t, "tree", "--depth", "1", "/app"))
	assert.Contains(t, s.ok(t, "tree", "--all", "/app"), "lock-0000000000")
	turn := kit.Put(t, client, "/app/locks/single/locks/lock-")
	assert.Contains(t, s.ok(t, "tree", "--all", "/app"), "\n      locks\n", "the folder of a semaphore is no mutex")
	require.NoError(t, client.Delete(t.Context(), turn, framework.AnyVersion))
	lines := strings.Split(strings.TrimSpace(s.ok(t, "tree", "--json", "/app/locks")), "\n")
	require.Len(t, lines, 3)
	shown := decode[map[string]any](t, lines[1])
	assert.Contains(t, shown, "since")
	assert.Less(t, shown["age_seconds"], 60.0)
	delete(shown, "since")
	delete(shown, "age_seconds")
	assert.Equal(t, map[string]any{"path": "/app/locks/orders", "kind": "mutex", "holds": 1.0, "holder": "me\x1b"}, shown)

	assert.Equal(t, "config\nlocks\n", s.ok(t, "ls", "/app"))
	assert.Equal(t, `["config","locks"]`+"\n", s.ok(t, "ls", "/app", "--json"))
	assert.Contains(t, s.ok(t, "ls", "/app", "--long"), "config  (version 0, 4 bytes, 0 children, created 2")
	assert.Equal(t, "a\x1bb\n", s.ok(t, "get", "/app/config"), "not a terminal: as it is")
	got := decode[map[string]any](t, s.ok(t, "get", "/app/config", "--json"))
	assert.Equal(t, "a\x1bb\n", got["data"])
	s.env["PADDOCK_NAMESPACE"] = "app"
	assert.Equal(t, "config\nlocks\n", s.ok(t, "ls"))
	assert.Equal(t, "orders\nsingle\n", s.ok(t, "--namespace", "/app/locks", "ls"))
}

func TestTreeThatTakesTooLong(t *testing.T) {
	s := newShell(t)
	require.NoError(t, s.client(t).EnsurePath(t.Context(), "/app/one"))
	s.On(zktest.Match{Op: "getChildren2", Path: "/app/one"}, zktest.Delay(4*time.Second))
	code, out, errs := s.run(t, "tree", "--timeout", "2s", "/app")
	assert.Equal(t, exitUnreachable, code)
	assert.Equal(t, "/app\n", out, "what was known by then")
	assert.Contains(t, errs, "--timeout has passed")
}

func TestExitCodes(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	secret := framework.Auth{Scheme: "digest", Data: []byte("me:secret")}
	owner := kit.Connect(t, s, func(cfg *framework.Config) { cfg.Auth = []framework.Auth{secret} })
	_, err := owner.Create(t.Context(), "/mine", []byte("x"), framework.Persistent, framework.ACLs(framework.ACL{Perms: 31, Scheme: "auth"}))
	require.NoError(t, err)
	_, err = client.Create(t.Context(), "/open", nil, framework.Persistent)
	require.NoError(t, err)

	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"done", []string{"ls", "/"}, exitOK, ""},
		{"no verb", nil, exitUsage, "a verb is missing"},
		{"no such verb", []string{"whom", "/a"}, exitUsage, `unknown verb "whom"`},
		{"no path", []string{"who"}, exitUsage, "who needs PATH"},
		{"two paths", []string{"who", "/a", "/b"}, exitUsage, `unexpected "/b"`},
		{"no slash", []string{"who", "a"}, exitUsage, "must begin with /"},
		{"a path that cannot be", []string{"who", "/a//b"}, exitUsage, "/a//b"},
		{"no such flag", []string{"who", "--nonsense", "/a"}, exitUsage, "-nonsense"},
		{"a flag of others", []string{"who", "--depth", "1", "/a"}, exitUsage, "--depth is no flag of who"},
		{"a flag's value", []string{"--timeout", "soon", "who", "/a"}, exitUsage, "-timeout"},
		{"a number without a unit", []string{"--timeout", "3", "who", "/a"}, exitUsage, "such as 3s"},
		{"no number", []string{"who", "--semaphore", "two", "/a"}, exitUsage, "-semaphore: write a whole number"},
		{"a semaphore of nobody", []string{"who", "--semaphore", "0", "/a"}, exitUsage, "--semaphore is 0"},
		{"a lock of nobody", []string{"lock", "--semaphore", "0", "/a", "--", "true"}, exitUsage, "--semaphore is 0"},
		{"a negative depth", []string{"tree", "--depth", "-1"}, exitUsage, "--depth is -1"},
		{"no session", []string{"ls", "--session-timeout", "0s"}, exitUsage, "--session-timeout is 0s"},
		{"two limits", []string{"lock", "--try", "--wait", "0s", "/a", "--", "true"}, exitUsage, "exclude each other"},
		{"no time", []string{"--timeout", "0s", "who", "/a"}, exitUsage, "--timeout is 0s"},
		{"a short session", []string{"--session-timeout", "1ms", "ls"}, exitUsage, "SessionTimeout"},
		{"a certificate without key", []string{"--tls-cert", "x", "ls"}, exitUsage, "go together"},
		{"no certificates", []string{"--tls-ca", "/dev/null", "ls"}, exitUsage, "no certificate in"},
		{"a credential of no scheme", []string{"--auth", "secret", "ls"}, exitUsage, "scheme:data"},
		{"no servers", []string{"--servers", "", "ls"}, exitUsage, "PADDOCK_SERVERS"},
		{"unreachable", []string{"--servers", "127.0.0.1:1", "--timeout", "300ms", "ls"}, exitUnreachable, "not connected"},
		{"no node", []string{"get", "/nowhere"}, exitNotFound, "/nowhere"},
		{"refused", []string{"get", "/mine"}, exitRefused, "/mine"},
		{"not refused", []string{"get", "/mine", "--auth", "digest:me:secret"}, exitOK, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, errs := s.run(t, tc.args...)
			assert.Equal(t, tc.code, code, errs)
			assert.Contains(t, errs, tc.says)
			if tc.code == exitUsage && !strings.Contains(tc.says, "SessionTimeout") && !strings.Contains(tc.says, "/a//b") {
				assert.Contains(t, errs, "usage: paddock ")
			}
			if tc.code != exitOK {
				assert.Empty(t, out)
			}
			assert.NotContains(t, errs, "zktest", "an operator has no tests")
			assert.NotContains(t, errs, "secret", "no credential is printed")
		})
	}
}

// Encryption is never left out for the spelling of a yes.
func TestTLSFromTheEnvironment(t *testing.T) {
	for _, tc := range []struct {
		text string
		args []string
		want bool
		says string
	}{
		{text: ""},
		{text: "1", want: true},
		{text: "true", want: true},
		{text: "0"},
		{text: "1", args: []string{"--tls=false"}},
		{text: "0", args: []string{"--tls"}, want: true},
		{text: "yes", says: `PADDOCK_TLS is "yes"`},
		{text: "yes", args: []string{"--tls"}, want: true},
	} {
		inv, err := parse(append(tc.args, "ls"), func(name string) string { return map[string]string{"PADDOCK_TLS": tc.text}[name] })
		if tc.says != "" {
			assert.ErrorContains(t, err, tc.says)
			continue
		}
		if assert.NoError(t, err, "%+v", tc) {
			assert.Equal(t, tc.want, inv.tls, "%+v", tc)
		}
	}
}

func TestHelp(t *testing.T) {
	s := new(shell)
	all := s.ok(t, "help")
	for _, v := range verbs() {
		assert.Contains(t, all, "\n  "+v.name+" ")
		of := s.ok(t, v.name, "--help")
		assert.Contains(t, of, "Usage: paddock "+v.name)
		for _, name := range v.flags {
			assert.Contains(t, of, "\n  --"+name)
		}
	}
	assert.Contains(t, s.ok(t, "--json", "version"), `"version":`)
}

func TestJSONIsSafeForTerminals(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeJSON(&b, lockview.Text("\x1b\u009b\u202e\U000e0001 <ok>")))
	assert.Equal(t, `"\u001b\u009b\u202e\udb40\udc01 \u003cok\u003e"`+"\n", b.String())
	assert.Equal(t, "\x1b\u009b\u202e\U000e0001 <ok>", decode[string](t, b.String()))
}

func TestInterrupted(t *testing.T) {
	assert.Equal(t, exitInterrupted, exitCode(fmt.Errorf("x: %w", context.Canceled)))
	assert.Equal(t, exitUnreachable, exitCode(errors.Join(framework.ErrNotConnected, context.Canceled)))
	assert.Equal(t, exitFailed, exitCode(errors.New("other")))
}
