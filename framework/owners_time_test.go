package framework_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// nodeKind is a mode, with the option that makes it another kind.
type nodeKind struct {
	name string
	mode framework.Mode
	opts []framework.CreateOption
}

func (k nodeKind) ephemeral() bool {
	return k.mode == framework.Ephemeral || k.mode == framework.EphemeralSequential
}

var nodeKinds = []nodeKind{
	{"persistent", framework.Persistent, nil},
	{"ephemeral", framework.Ephemeral, nil},
	{"container", framework.Container, nil},
	{"with a time to live", framework.Persistent, []framework.CreateOption{framework.TTL(time.Hour)}},
}

type makeNode func(ctx context.Context, c *framework.Client, path string, kind nodeKind) error

func creating(opts ...framework.CreateOption) makeNode {
	return func(ctx context.Context, c *framework.Client, path string, kind nodeKind) error {
		_, err := c.Create(ctx, path, []byte("d"), kind.mode, append(opts[:len(opts):len(opts)], kind.opts...)...)
		return err
	}
}

func creatingInCommit(opts ...framework.CommitOption) makeNode {
	return func(ctx context.Context, c *framework.Client, path string, kind nodeKind) error {
		tx := c.Transaction()
		tx.Create(path, []byte("d"), kind.mode)
		_, err := tx.Commit(ctx, opts...)
		return err
	}
}

func creatingBelow(ctx context.Context, c *framework.Client, path string, kind nodeKind) error {
	return creating(framework.Parents(), framework.Idempotent())(ctx, c, path+"/x/y", kind)
}

func ensuring(below string) makeNode {
	return func(ctx context.Context, c *framework.Client, path string, _ nodeKind) error {
		return c.EnsurePath(ctx, path+below)
	}
}

// Nil means that the node is there, and is ephemeral as was asked for, of this session.
// Each call that makes nodes is tried beside an equal node of each kind and owner.
func TestEqualNodesOfOthers(t *testing.T) {
	const nodes, commits, receipts, parents = 0, 1, 2, 3
	for name, tc := range map[string]struct {
		call makeNode
		// atOnce and later say that a node that is there may be as intended: in answer
		// to the first request, or after a request or reply was lost.
		atOnce, later bool
		refused       error // where it is not as intended, and nothing was lost
		of            int   // what it makes
	}{
		"create":                     {creating(), false, false, framework.ErrNodeExists, nodes},
		"create, idempotent":         {creating(framework.Idempotent()), true, true, framework.ErrNodeExists, nodes},
		"create, or set":             {creating(framework.OrSet()), true, false, framework.ErrNodeExists, nodes},
		"create, or set, idempotent": {creating(framework.OrSet(), framework.Idempotent()), true, true, framework.ErrNodeExists, nodes},
		"commit":                     {creatingInCommit(), false, false, framework.ErrNodeExists, commits},
		"commit, idempotent":         {creatingInCommit(framework.Idempotent()), false, true, framework.ErrNodeExists, commits},
		"commit, receipt":            {creatingInCommit(framework.Receipt("/receipts")), false, false, framework.ErrNodeExists, receipts},
		"create below":               {creatingBelow, true, true, framework.ErrNoChildrenForEphemerals, parents},
		"ensure path":                {ensuring(""), true, true, framework.ErrNoChildrenForEphemerals, parents},
		"ensure path below":          {ensuring("/x/y"), true, true, framework.ErrNoChildrenForEphemerals, parents},
	} {
		for _, asked := range nodeKinds {
			if tc.of == parents && asked.ephemeral() || tc.of != nodes && asked.opts != nil {
				continue
			}
			t.Run(name+", "+asked.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					admin, other, c := kit.Connect(t, srv), kit.Connect(t, srv), kit.Connect(t, srv)
					var claimed []string // nodes of which the call says that they are as intended
					tried := 0
					beside := func(found nodeKind, by *framework.Client, fault zktest.Fault, what string) {
						tried++
						path := fmt.Sprintf("/n%d", tried)
						require.NoError(t, creating()(t.Context(), by, path, found))
						rule := srv.On(zktest.Match{Session: c.SessionID(), Nth: 1, Func: func(r zktest.Request) bool {
							return strings.HasPrefix(r.Op, "create") || r.Op == "multi"
						}}, fault)
						err := tc.call(t.Context(), c, path, asked)
						rule.Remove()
						lost := rule.Fired() > 0 && what != "nothing" && tc.of != receipts // which show that it was not applied
						same := asked.ephemeral() == found.ephemeral() && (!asked.ephemeral() || by == c)
						what = fmt.Sprintf("%s lost, beside %s of this client (%t)", what, found.name, by == c)
						switch {
						case same && (lost && tc.later || !lost && tc.atOnce):
							require.NoError(t, err, what)
							claimed = append(claimed, path)
						case lost:
							require.ErrorIs(t, err, framework.ErrOutcomeUnknown, what)
						default:
							require.ErrorIs(t, err, tc.refused, what)
							data, _, err := admin.Get(t.Context(), path)
							require.NoError(t, err)
							require.Equal(t, "d", string(data), "left alone")
						}
					}
					for _, found := range nodeKinds {
						for _, by := range []*framework.Client{c, other} {
							beside(found, by, zktest.Delay(0), "nothing")
							beside(found, by, zktest.CutBefore(), "request")
							beside(found, by, zktest.CutAfter(), "reply")
						}
					}
					require.NoError(t, other.Close())
					allThere(t, admin, claimed, true)
					require.NoError(t, c.Close())
					allThere(t, admin, claimed, !asked.ephemeral())
				})
			})
		}
	}
}

func allThere(t *testing.T, c *framework.Client, paths []string, want bool) {
	t.Helper()
	for _, path := range paths {
		there, _, err := c.Exists(t.Context(), path)
		require.NoError(t, err)
		require.Equal(t, want, there, path)
	}
}

// What stands under the name of a protected node is looked at as well.
func TestProtectedNodeThatSomebodyHasReplaced(t *testing.T) {
	modes := append([]nodeKind{
		{"persistent, sequential", framework.PersistentSequential, nil},
		{"ephemeral, sequential", framework.EphemeralSequential, nil},
		{"with a time to live, sequential", framework.PersistentSequential, []framework.CreateOption{framework.TTL(time.Hour)}},
	}, nodeKinds...)
	for _, asked := range modes {
		for _, found := range nodeKinds {
			t.Run(asked.name+", "+found.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t, zktest.InMemory())
					admin, other := kit.Connect(t, srv), kit.Connect(t, srv)
					require.NoError(t, admin.EnsurePath(t.Context(), "/p"))
					replace := func(ctx context.Context, _ retry.Attempt) {
						names, _, err := admin.Children(ctx, "/p")
						assert.NoError(t, err)
						assert.Len(t, names, 1, "the first attempt has made it")
						assert.NoError(t, admin.Delete(ctx, "/p/"+names[0], 0))
						assert.NoError(t, creating()(ctx, other, "/p/"+names[0], found))
					}
					c := kit.Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.OneTime(time.Second).OnRetry(replace) })
					srv.On(zktest.Match{Session: c.SessionID(), Nth: 1, Func: func(r zktest.Request) bool { return strings.HasPrefix(r.Op, "create") }}, zktest.CutAfter())
					path, err := c.Create(t.Context(), "/p/n-", nil, asked.mode, append(asked.opts[:len(asked.opts):len(asked.opts)], framework.Protected())...)
					require.NoError(t, err)
					require.NoError(t, other.Close())
					allThere(t, admin, []string{path}, true)
					require.NoError(t, c.Close())
					allThere(t, admin, []string{path}, !asked.ephemeral())
				})
			})
		}
	}
}

// Somebody else's ephemeral node takes the place of a node right before it is used.
func TestNodeThatIsReplacedMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		op     string // before which the node is replaced
		call   makeNode
		refuse error
		says   string
	}{
		"or set":      {"setData", creating(framework.OrSet()), framework.ErrNodeExists, "its data was set, but zk: node already exists: it is an ephemeral node of session "},
		"ensure path": {"createContainer", ensuring(""), framework.ErrNoChildrenForEphemerals, ": /n is ephemeral, of session "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				other, c := kit.Connect(t, srv), kit.Connect(t, srv)
				persistent, ephemeral := nodeKinds[0], nodeKinds[1]
				if tc.op == "setData" {
					require.NoError(t, creating()(t.Context(), c, "/n", persistent))
				}
				srv.On(zktest.Match{Session: c.SessionID(), Op: tc.op, Nth: 1}, zktest.Call(func(zktest.Request) {
					assert.NoError(t, other.Delete(t.Context(), "/n", framework.AnyVersion, framework.IfExists()))
					assert.NoError(t, creating()(t.Context(), other, "/n", ephemeral))
				}))
				err := tc.call(t.Context(), c, "/n", persistent)
				require.ErrorIs(t, err, tc.refuse)
				require.ErrorContains(t, err, fmt.Sprintf("%s%#x", tc.says, other.SessionID()))
			})
		})
	}
}

// OrSet looks at what is there in the round trip of the creation, and needs no right to
// read it.
func TestOrSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Version("3.9"), zktest.Latency(kit.Latency))
		other, c := kit.Connect(t, srv), kit.Connect(t, srv)
		ephemeral := nodeKinds[1]
		mayWrite := framework.ACLs(zk.WorldACL(zk.PermWrite)...)
		set := func(path string) func() error {
			return func() error { return creating(framework.OrSet(), mayWrite)(t.Context(), c, path, ephemeral) }
		}
		assert.Equal(t, 1.0, kit.RoundTrips(t, set("/n")))
		assert.Equal(t, 2.0, kit.RoundTrips(t, set("/n")), "although it may not be read")
		require.NoError(t, creating(mayWrite)(t.Context(), other, "/hidden", ephemeral))
		require.NoError(t, creating()(t.Context(), other, "/seen", ephemeral))
		whose := fmt.Sprintf("zk: node already exists: it is an ephemeral node of session %#x, and goes with that one (this session is %#x): "+
			"wait until it has gone, or delete it", other.SessionID(), c.SessionID())
		require.EqualError(t, set("/seen")(), "create /seen: "+whose)
		require.EqualError(t, set("/hidden")(), "create /hidden: its data was set, but "+whose)
	})
}
