package locks_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// meant are all errors that callers test for. One that is missing fails
// TestTableOfErrorsAndCalls.
var meant = map[string]error{
	"framework.ErrNoNode": framework.ErrNoNode, "framework.ErrNodeExists": framework.ErrNodeExists,
	"framework.ErrBadVersion": framework.ErrBadVersion, "framework.ErrNotEmpty": framework.ErrNotEmpty,
	"framework.ErrNoAuth": framework.ErrNoAuth, "framework.ErrAuthFailed": framework.ErrAuthFailed,
	"framework.ErrInvalidACL": framework.ErrInvalidACL, "framework.ErrNoChildrenForEphemerals": framework.ErrNoChildrenForEphemerals,
	"framework.ErrInvalidPath": framework.ErrInvalidPath, "framework.ErrSessionExpired": framework.ErrSessionExpired,
	"framework.ErrClosed": framework.ErrClosed, "framework.ErrNotConnected": framework.ErrNotConnected,
	"framework.ErrOutcomeUnknown": framework.ErrOutcomeUnknown, "framework.ErrTooLarge": framework.ErrTooLarge, "framework.ErrTimeoutTooShort": framework.ErrTimeoutTooShort, "framework.ErrUnsupported": framework.ErrUnsupported,
	"framework.ErrReplyTooLarge": framework.ErrReplyTooLarge, "framework.ErrEndsConnection": framework.ErrEndsConnection, "framework.ErrInvalidArgument": framework.ErrInvalidArgument,
	"framework.ErrNilContext": framework.ErrNilContext, "framework.ErrBehind": framework.ErrBehind,

	"locks.ErrLockLost": locks.ErrLockLost, "locks.ErrNotAcquired": locks.ErrNotAcquired,
	"locks.ErrNodeDeleted": locks.ErrNodeDeleted,
	"locks.ErrDeadlock":    locks.ErrDeadlock, "locks.ErrReleased": locks.ErrReleased,
	"locks.ErrReleasePending": locks.ErrReleasePending, "locks.ErrInvalidLock": locks.ErrInvalidLock,
	"locks.ErrSequenceExhausted": locks.ErrSequenceExhausted, "locks.ErrNotRevocable": locks.ErrNotRevocable, "locks.ErrFenced": locks.ErrFenced,
	"locks.ErrNoFence": locks.ErrNoFence,

	"retry.ErrExhausted": retry.ErrExhausted, "retry.ErrStopped": retry.ErrStopped,
	"retry.ErrUnsure": retry.ErrUnsure, "retry.ErrNoBudget": retry.ErrNoBudget, "retry.ErrOvertaken": retry.ErrOvertaken,

	"zk.ErrNoServer": zk.ErrNoServer, "zk.ErrInvalidPath": zk.ErrInvalidPath, "zk.ErrConnectionClosed": zk.ErrConnectionClosed,
	"zk.ErrUnknown": zk.ErrUnknown, "zk.ErrAPIError": zk.ErrAPIError, "zk.ErrNoNode": zk.ErrNoNode, "zk.ErrNoAuth": zk.ErrNoAuth,
	"zk.ErrBadVersion": zk.ErrBadVersion, "zk.ErrNoChildrenForEphemerals": zk.ErrNoChildrenForEphemerals,
	"zk.ErrNodeExists": zk.ErrNodeExists, "zk.ErrNotEmpty": zk.ErrNotEmpty, "zk.ErrSessionExpired": zk.ErrSessionExpired,
	"zk.ErrInvalidACL": zk.ErrInvalidACL, "zk.ErrInvalidFlags": zk.ErrInvalidFlags, "zk.ErrAuthFailed": zk.ErrAuthFailed,
	"zk.ErrClosing": zk.ErrClosing, "zk.ErrNothing": zk.ErrNothing, "zk.ErrSessionMoved": zk.ErrSessionMoved,
	"zk.ErrReconfigDisabled": zk.ErrReconfigDisabled, "zk.ErrBadArguments": zk.ErrBadArguments, "zk.ErrDeadlock": zk.ErrDeadlock,
	"zk.ErrNotLocked": zk.ErrNotLocked, "zk.ErrUnhandledFieldType": zk.ErrUnhandledFieldType, "zk.ErrPtrExpected": zk.ErrPtrExpected,
	"zk.ErrShortBuffer": zk.ErrShortBuffer,

	"context.DeadlineExceeded": context.DeadlineExceeded,
}

// scene is what a call finds: a node at path with a child, a lock that is free,
// and a hold of another lock.
type scene struct {
	c    *framework.Client
	path string
	hold *locks.Hold
}

func (s scene) lock() string { return s.path + "-lock" }

// endable is a call that ends with its context.
type endable struct {
	call     func(ctx context.Context, s scene) error
	writes   bool // its outcome can be unknown
	tries    bool // TryAcquire: no error matches two of three
	held     bool // it needs a hold
	alone    bool // it asks no server that it is connected to
	connects bool // it waits for a connection, and there is none
}

func of2[A any](_ A, err error) error { return err }

func of3[A, B any](_ A, _ B, err error) error { return err }

func of4[A, B, C any](_ A, _ B, _ C, err error) error { return err }

// endables are all calls that take a context and return an error, by the name
// of the method and, behind a space, what is special.
var endables = map[string]endable{
	"framework.Connect": {alone: true, connects: true, call: func(ctx context.Context, _ scene) error {
		return of2(framework.Connect(ctx, framework.Config{ConnectString: "127.0.0.1:1", DialContext: hangs}))
	}},
	"framework.Client.BlockUntilConnected": {alone: true, connects: true, call: func(ctx context.Context, _ scene) error {
		c, err := framework.Start(framework.Config{ConnectString: "127.0.0.1:1", DialContext: hangs})
		if err != nil {
			return nil
		}
		defer func() { _ = c.Close() }()
		return c.BlockUntilConnected(ctx)
	}},
	"framework.Client.Get":       {call: func(ctx context.Context, s scene) error { return of3(s.c.Get(ctx, s.path)) }},
	"framework.Client.GetW":      {call: func(ctx context.Context, s scene) error { return of4(s.c.GetW(ctx, s.path)) }},
	"framework.Client.Exists":    {call: func(ctx context.Context, s scene) error { return of3(s.c.Exists(ctx, s.path)) }},
	"framework.Client.ExistsW":   {call: func(ctx context.Context, s scene) error { return of4(s.c.ExistsW(ctx, s.path)) }},
	"framework.Client.Children":  {call: func(ctx context.Context, s scene) error { return of3(s.c.Children(ctx, s.path)) }},
	"framework.Client.ChildrenW": {call: func(ctx context.Context, s scene) error { return of4(s.c.ChildrenW(ctx, s.path)) }},
	"framework.Client.ReadAll": {call: func(ctx context.Context, s scene) error {
		return of2(s.c.ReadAll(ctx, framework.Read{Path: s.path}))
	}},
	"framework.Client.Subscribe": {call: func(ctx context.Context, s scene) error { return of2(s.c.Subscribe(ctx, s.path)) }},
	"framework.Client.Keep": {writes: true, call: func(ctx context.Context, s scene) error {
		return of2(s.c.Keep(ctx, s.path+"/kept", nil))
	}},
	"framework.Client.GetACL": {call: func(ctx context.Context, s scene) error { return of3(s.c.GetACL(ctx, s.path)) }},
	"framework.Client.Sync":   {call: func(ctx context.Context, s scene) error { return s.c.Sync(ctx, s.path) }},
	"framework.Client.EnsurePath": {writes: true, call: func(ctx context.Context, s scene) error {
		return s.c.EnsurePath(ctx, s.path+"/new/er")
	}},
	"framework.Client.Create":           createsNode(framework.Persistent),
	"framework.Client.Create parents":   createsNode(framework.Ephemeral, framework.Parents()),
	"framework.Client.Create protected": createsNode(framework.EphemeralSequential, framework.Protected()),
	"framework.Client.Create or set":    createsNode(framework.Persistent, framework.OrSet()),
	"framework.Client.Create same":      createsNode(framework.Persistent, framework.Idempotent()),
	"framework.Client.Create container": createsNode(framework.Container),
	"framework.Client.Set":              setsData(framework.AnyVersion),
	"framework.Client.Set same":         setsData(0, framework.Idempotent()),
	"framework.Client.SetACL": {writes: true, call: func(ctx context.Context, s scene) error {
		return of2(s.c.SetACL(ctx, s.path, zk.WorldACL(zk.PermAll), 0, framework.Idempotent()))
	}},
	"framework.Client.Delete":                        deletes(),
	"framework.Client.Delete if it exists":           deletes(framework.IfExists()),
	"framework.Client.Delete same":                   deletes(framework.Idempotent()),
	"framework.Client.Delete guaranteed":             deletes(framework.Guaranteed()),
	"framework.Client.Delete all below":              deletes(framework.Recursive()),
	"framework.Client.Delete all below if it exists": deletes(framework.Recursive(), framework.IfExists()),
	"framework.Transaction.Commit":                   commits(),
	"framework.Transaction.Commit same":              commits(framework.Idempotent()),

	"locks.AttemptRevoke": {held: true, writes: true, call: func(ctx context.Context, s scene) error {
		return locks.AttemptRevoke(ctx, s.c, s.hold.Path())
	}},
	"locks.Do": {call: func(ctx context.Context, s scene) error {
		return locks.Do(ctx, locks.NewInterProcessMutex(s.c, s.lock()), func(context.Context) error { return nil })
	}},
	"locks.Do at work": {held: true, writes: true, call: func(ctx context.Context, s scene) error {
		return locks.Do(ctx, taken{s.hold}, func(ctx context.Context) error {
			return s.c.Delete(ctx, s.path, framework.AnyVersion, framework.IfExists())
		})
	}},
	"locks.TryDo": {tries: true, call: func(ctx context.Context, s scene) error {
		return locks.TryDo(ctx, locks.NewInterProcessMutex(s.c, s.lock()), time.Hour, func(context.Context) error { return nil })
	}},
	"locks.InterProcessMutex.Acquire":             acquiresAt("mutex"),
	"locks.InterProcessMutex.Acquire read":        acquiresAt("read"),
	"locks.InterProcessMutex.Acquire write":       acquiresAt("write"),
	"locks.InterProcessMutex.TryAcquire":          triesAt("mutex"),
	"locks.InterProcessMutex.TryAcquire read":     triesAt("read"),
	"locks.InterProcessSemaphoreMutex.Acquire":    acquiresAt("semaphore mutex"),
	"locks.InterProcessSemaphoreMutex.TryAcquire": triesAt("semaphore mutex"),
	"locks.InterProcessSemaphore.Acquire":         acquiresAt("semaphore"),
	"locks.InterProcessSemaphore.TryAcquire":      triesAt("semaphore"),
	"locks.InterProcessSemaphore.AcquireN": {call: func(ctx context.Context, s scene) error {
		return of2(locks.NewInterProcessSemaphore(s.c, s.lock(), 3).AcquireN(ctx, 2))
	}},
	"locks.InterProcessSemaphore.TryAcquireN": {tries: true, call: func(ctx context.Context, s scene) error {
		return of2(locks.NewInterProcessSemaphore(s.c, s.lock(), 3).TryAcquireN(ctx, 2, time.Hour))
	}},
	"locks.InterProcessMultiLock.Acquire":    acquiresAt("multi"),
	"locks.InterProcessMultiLock.TryAcquire": triesAt("multi"),
	"locks.InterProcessMutex.Participants": {call: func(ctx context.Context, s scene) error {
		return of2(locks.NewInterProcessMutex(s.c, s.path).Participants(ctx))
	}},
	"locks.InterProcessMutex.First": {call: func(ctx context.Context, s scene) error {
		return of2(locks.NewInterProcessMutex(s.c, s.path).First(ctx))
	}},
	"locks.InterProcessSemaphoreMutex.Participants": {call: func(ctx context.Context, s scene) error {
		return of2(locks.NewInterProcessSemaphoreMutex(s.c, s.path).Participants(ctx))
	}},
	"locks.InterProcessSemaphore.Participants": {call: func(ctx context.Context, s scene) error {
		return of2(locks.NewInterProcessSemaphore(s.c, s.path, 2).Participants(ctx))
	}},
	"locks.Transaction.Commit":                commitsFenced((*locks.Transaction).Commit),
	"locks.Transaction.Commit same":           commitsFenced((*locks.Transaction).Commit, framework.Idempotent()),
	"locks.Transaction.CommitAndRelease":      commitsFenced((*locks.Transaction).CommitAndRelease),
	"locks.Transaction.CommitAndRelease same": commitsFenced((*locks.Transaction).CommitAndRelease, framework.Idempotent()),

	"retry.Do": {alone: true, call: func(ctx context.Context, _ scene) error {
		return retry.Do(ctx, retry.Forever(time.Hour), func(context.Context) error { return errors.New("not yet") })
	}},
	"retry.DoValue": {alone: true, call: func(ctx context.Context, _ scene) error {
		return of2(retry.DoValue(ctx, retry.Forever(time.Hour), func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, errors.New("not now")
		}))
	}},
}

// endless take a context and tell of no end of it, or ask no server.
var endless = []string{
	"locks.NewHold", "locks.Hold.Bind", "locks.InterProcessMutex.HeldBy", "locks.InterProcessSemaphoreMutex.HeldBy", "retry.Detach",
	"framework.Subscription.Next", "framework.Subscription.Events", "framework.KeptNode.Remove",
	"framework.ContextError",
}

func hangs(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// taken is a lock that its only user has already.
type taken struct{ hold *locks.Hold }

func (l taken) Acquire(ctx context.Context) (*locks.Hold, error) {
	hold, _ := locks.NewHold(ctx, func() error { return nil })
	return hold, nil
}

func (l taken) TryAcquire(ctx context.Context, _ time.Duration) (*locks.Hold, error) {
	return l.Acquire(ctx)
}

func createsNode(mode framework.Mode, opts ...framework.CreateOption) endable {
	return endable{writes: true, call: func(ctx context.Context, s scene) error {
		return of2(s.c.Create(ctx, s.path+"/new", nil, mode, opts...))
	}}
}

func setsData(version int32, opts ...framework.SetOption) endable {
	return endable{writes: true, call: func(ctx context.Context, s scene) error {
		return of2(s.c.Set(ctx, s.path, nil, version, opts...))
	}}
}

func deletes(opts ...framework.DeleteOption) endable {
	return endable{writes: true, call: func(ctx context.Context, s scene) error {
		return s.c.Delete(ctx, s.path, framework.AnyVersion, opts...)
	}}
}

func commits(opts ...framework.CommitOption) endable {
	return endable{writes: true, call: func(ctx context.Context, s scene) error {
		tx := s.c.Transaction()
		tx.Set(s.path, nil, 0)
		return of2(tx.Commit(ctx, opts...))
	}}
}

func commitsFenced(commit func(*locks.Transaction, context.Context, ...framework.CommitOption) ([]framework.Result, error), opts ...framework.CommitOption) endable {
	return endable{writes: true, held: true, call: func(ctx context.Context, s scene) error {
		tx := s.hold.Transaction()
		tx.Set(s.path, nil, 0)
		return of2(commit(tx, ctx, opts...))
	}}
}

var atLock = map[string]func(c *framework.Client, path string) locks.Lock{
	"mutex": func(c *framework.Client, path string) locks.Lock { return locks.NewInterProcessMutex(c, path) },
	"read": func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, path).ReadLock()
	},
	"write": func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessReadWriteLock(c, path).WriteLock()
	},
	"semaphore": func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessSemaphore(c, path, 2)
	},
	"semaphore mutex": func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessSemaphoreMutex(c, path)
	},
	"multi": func(c *framework.Client, path string) locks.Lock {
		return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, path), locks.NewInterProcessMutex(c, path+"-too"))
	},
}

func acquiresAt(name string) endable {
	return endable{call: func(ctx context.Context, s scene) error { return of2(atLock[name](s.c, s.lock()).Acquire(ctx)) }}
}

func triesAt(name string) endable {
	return endable{tries: true, call: func(ctx context.Context, s scene) error {
		return of2(atLock[name](s.c, s.lock()).TryAcquire(ctx, time.Hour))
	}}
}

// carrier is the cause of a context: one of ours, inside a type of its own.
type carrier struct{ error }

func (c *carrier) Unwrap() error { return c.error }

// mayMatch is whether an error is true of a call that ended so.
func (e endable) mayMatch(when string, target error) bool {
	switch {
	case errors.Is(target, framework.ErrOutcomeUnknown):
		return e.writes && when == "in flight"
	case errors.Is(target, framework.ErrNotConnected):
		return e.connects || when == "not connected" && !e.tries && !e.alone
	}
	return false
}

// endFor ends a call for each cause, and returns what it said.
func (e endable) endFor(t *testing.T, when string) map[string]error {
	srv := zktest.Start(t, zktest.InMemory())
	c := kit.Connect(t, srv)
	scenes := make(map[string]scene)
	for n, cause := range slices.Sorted(maps.Keys(meant)) {
		if !*everySweep && n%4 != len(t.Name())%4 {
			continue // each cause with some of the calls
		}
		s := scene{c: c, path: fmt.Sprint("/x", n)}
		scenes[cause] = s
		if e.alone {
			continue
		}
		for _, path := range []string{s.path, s.path + "/child"} {
			_, err := c.Create(t.Context(), path, nil, framework.Persistent)
			require.NoError(t, err)
		}
		if e.held {
			hold, err := locks.NewInterProcessMutex(c, s.path+"-held", locks.NodeData(nil)).Acquire(t.Context())
			require.NoError(t, err)
			s.hold = hold
			scenes[cause] = s
		}
	}
	switch when {
	case "in flight":
		srv.Stall(c.SessionID(), zktest.FromClient)
	case "not connected":
		srv.Refuse()
		srv.DisconnectAll()
		synctest.Wait()
	}
	type end struct {
		cause string
		err   error
	}
	ends := make(chan end, len(meant))
	cancels := make(map[string]context.CancelCauseFunc)
	for cause, s := range scenes {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancels[cause] = cancel
		if when == "before" {
			cancel(&carrier{meant[cause]})
		}
		go func() { ends <- end{cause, e.call(ctx, s)} }()
	}
	synctest.Wait()
	for cause, cancel := range cancels {
		cancel(&carrier{meant[cause]})
	}
	said := make(map[string]error)
	for range scenes {
		e := <-ends
		said[e.cause] = e.err
	}
	srv.Accept()
	srv.Unstall(c.SessionID())
	return said
}

func TestTableOfErrorsAndCalls(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/go-zookeeper/zk").Output()
	require.NoError(t, err)
	for pkg, dir := range map[string]string{"framework": "../../framework", "locks": ".", "retry": "../../retry", "zk": strings.TrimSpace(string(out))} {
		errs, calls := exported(t, pkg, dir)
		require.NotEmpty(t, errs)
		for _, name := range errs {
			assert.Contains(t, meant, name)
		}
		if pkg == "zk" {
			continue
		}
		require.NotEmpty(t, calls)
		for _, name := range calls {
			known := slices.Contains(endless, name)
			for key := range endables {
				known = known || key == name || strings.HasPrefix(key, name+" ")
			}
			assert.True(t, known, "%s takes a context, and is in neither list", name)
		}
	}
}

// exported lists the errors of a package, and its functions and methods that
// take a context.
func exported(t *testing.T, pkg, dir string) (errs, calls []string) {
	t.Helper()
	parsed, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // build tags make no difference
	require.NoError(t, err)
	for _, file := range parsed[pkg].Files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						for _, name := range v.Names {
							if strings.HasPrefix(name.Name, "Err") {
								errs = append(errs, pkg+"."+name.Name)
							}
						}
					}
				}
			case *ast.FuncDecl:
				if name := callName(d); name != "" {
					calls = append(calls, pkg+"."+name)
				}
			}
		}
	}
	return errs, calls
}

// callName is what an exported function that takes a context is called, "" for
// any other.
func callName(d *ast.FuncDecl) string {
	takes := slices.ContainsFunc(d.Type.Params.List, func(f *ast.Field) bool {
		sel, ok := f.Type.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Context"
	})
	if !takes || !d.Name.IsExported() {
		return ""
	}
	if d.Recv == nil {
		return d.Name.Name
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	if !ok || !id.IsExported() {
		return ""
	}
	return id.Name + "." + d.Name.Name
}

// failing is a network of the caller's, which fails with errors of its own.
type failing struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	err  atomic.Pointer[error] // nil while it works
}

func (f *failing) instead(err error) error {
	if own := f.err.Load(); own != nil {
		return *own
	}
	return err
}

func (f *failing) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := f.instead(nil); err != nil {
		return nil, err
	}
	nc, err := f.dial(ctx, network, addr)
	return &failingConn{nc, f}, err
}

type failingConn struct {
	net.Conn
	f *failing
}

func (c *failingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		err = c.f.instead(err)
	}
	return n, err
}

func (c *failingConn) Write(p []byte) (int, error) {
	if err := c.f.instead(nil); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// What the caller's network fails with can be any error as well.
func TestErrorsOfTheCallersNetworkAreNoAnswers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"framework.Client.Get", "framework.Client.Exists", "framework.Client.ExistsW", "framework.Client.Delete if it exists",
		"framework.Client.Delete all below if it exists", "framework.Client.Create or set", "framework.Client.Create same",
		"framework.Client.Set same", "framework.Transaction.Commit same", "locks.Transaction.Commit same", "locks.AttemptRevoke",
		"locks.InterProcessMutex.Participants", "locks.InterProcessSemaphore.Participants", "locks.InterProcessMutex.Acquire",
		"locks.InterProcessMultiLock.TryAcquire",
	} {
		e := endables[name]
		for _, when := range []string{"dialing", "in flight"} {
			t.Run(name+", "+when, func(t *testing.T) {
				for i, own := range slices.Sorted(maps.Keys(meant)) {
					if !*everySweep && i%4 != len(name)%4 {
						continue // each error with some of the calls
					}
					one := meant[own]
					synctest.Test(t, func(t *testing.T) {
						err := e.failFor(t, when, fmt.Errorf("of mine: %w", &carrier{one}))
						require.Error(t, err, "%s", own)
						for target, other := range meant {
							lost := errors.Is(other, framework.ErrOutcomeUnknown) && e.writes && when == "in flight"
							ours := errors.Is(other, framework.ErrNotConnected) || strings.HasPrefix(target, "retry.")
							late := errors.Is(other, context.DeadlineExceeded) && strings.HasSuffix(name, "Acquire") // which waits for longer
							if !lost && !ours && !late && errors.Is(err, other) {
								assert.Fail(t, "wrong match", "%s: %v matches %s", own, err, target)
							}
						}
						assert.ErrorContains(t, err, "of mine: "+one.Error())
					})
				}
			})
		}
	}
}

func (e endable) failFor(t *testing.T, when string, own error) error {
	srv := zktest.Start(t, zktest.InMemory())
	f := &failing{dial: srv.DialContext}
	c := kit.Connect(t, srv, func(cfg *framework.Config) {
		cfg.DialContext, cfg.Retry, cfg.CloseTimeout = f.DialContext, retry.NTimes(1, time.Second), time.Second
	})
	s := scene{c: c, path: "/x"}
	for _, path := range []string{s.path, s.path + "/child"} {
		_, err := c.Create(t.Context(), path, nil, framework.Persistent)
		require.NoError(t, err)
	}
	hold, err := locks.NewInterProcessMutex(c, "/held", locks.NodeData(nil)).Acquire(t.Context())
	require.NoError(t, err)
	s.hold = hold
	fail := func() {
		f.err.Store(&own)
		srv.DisconnectAll()
		synctest.Wait()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
	defer cancel()
	if when == "dialing" {
		fail()
		return e.call(ctx, s)
	}
	srv.Stall(c.SessionID(), zktest.FromClient)
	said := make(chan error)
	go func() { said <- e.call(ctx, s) }()
	synctest.Wait()
	fail()
	return <-said
}

// A context can end for any reason: an errgroup's ends with the first error of
// the group, and a hold's says how it was lost. No call may take the reason for
// what a server has said, nor tell it to its caller as that.
func TestEndOfAContextIsNoAnswer(t *testing.T) {
	t.Parallel()
	tried, missing, wrong := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(endables)) {
		e := endables[name]
		for _, when := range []string{"before", "in flight", "not connected"} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					for cause, err := range e.endFor(t, when) {
						tried++
						if !assert.Error(t, err, "cause %s", cause) {
							missing++
							continue
						}
						assert.ErrorIs(t, err, context.Canceled)
						for target, one := range meant {
							if errors.Is(err, one) && !e.mayMatch(when, one) {
								wrong++
								assert.Fail(t, "wrong match", "cause %s: %v matches %s", cause, err, target)
							}
						}
						for _, typ := range []any{new(*carrier), new(*locks.LostError), new(*framework.TransactionError), new(*framework.ConfigError)} {
							if errors.As(err, typ) {
								wrong++
								assert.Fail(t, "wrong type", "cause %s: %v is a %T", cause, err, typ)
							}
						}
						assert.ErrorContains(t, err, "(cause: "+meant[cause].Error()+")")
					}
				})
			})
		}
	}
	t.Logf("%d calls, %d causes, before, in flight and not connected: %d ends; %d without an error, %d wrong matches",
		len(endables), len(meant), tried, missing, wrong)
}
