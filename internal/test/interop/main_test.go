//go:build interop

package interop

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// rig is what all tests share: a server, a witness, and peers of each language.
type rig struct {
	zk      *realzk.Ensemble
	witness *referee
	java    *java
	python  string
	peers   map[string][]*peer
	admin   *framework.Client

	mu   sync.Mutex // guards the fields below
	next int
	rows []string // what was counted, for the end
}

var shared *rig

func TestMain(m *testing.M) {
	if witness := os.Getenv(roleVar); witness != "" {
		runGoPeer(witness)
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	r, err := newRig(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	shared = r
	status := m.Run()
	version, err := r.zk.Version(ctx)
	r.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	fmt.Printf("ZooKeeper %s, Curator %s\n", version, r.java.curator)
	fmt.Printf("%-34s %6s %8s %8s %8s %8s\n", "recipe", "rounds", "go>java", "java>go", "go>go", "java>java")
	for _, row := range r.rows {
		fmt.Println(row)
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return 1
	}
	return status
}

func newRig(ctx context.Context) (r *rig, err error) {
	r = &rig{peers: make(map[string][]*peer)}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.python, err = kazooPython(ctx); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "paddock-interop-")
	if err != nil {
		return r, err
	}
	if r.java, err = compile(ctx, dir); err != nil {
		return r, err
	}
	r.java.dir = dir
	if r.witness, err = newReferee(); err != nil {
		return r, err
	}
	if r.zk, err = realzk.Start(ctx, realzk.Options{Tick: tick}); err != nil {
		return r, err
	}
	for _, language := range []string{"go", "java", "go", "java"} {
		p, err := r.startPeer(language)
		if err != nil {
			return r, err
		}
		r.peers[language] = append(r.peers[language], p)
	}
	r.admin, err = framework.Connect(ctx, framework.Config{ConnectString: r.zk.ConnectString()})
	return r, err
}

func (r *rig) close() {
	for _, peers := range r.peers {
		for _, p := range peers {
			p.stop()
		}
	}
	if r.admin != nil {
		_ = r.admin.Close()
	}
	if r.zk != nil {
		_ = r.zk.Close()
	}
	if r.witness != nil {
		r.witness.close()
	}
	if r.java != nil {
		_ = os.RemoveAll(r.java.dir)
	}
}

// row notes what a test has counted.
func (r *rig) row(t *testing.T, what string, c roundCounts) {
	t.Helper()
	row := fmt.Sprintf("%-34s %6d %8d %8d %8d %8d", what, c.rounds, c.between("go", "java"), c.between("java", "go"), c.between("go", "go"), c.between("java", "java"))
	t.Log(row)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, row)
	slices.SortStableFunc(r.rows, func(a, b string) int { return strings.Compare(a[:34], b[:34]) })
}

// other is the other language of a pair.
func other(language string) string {
	if language == "go" {
		return "java"
	}
	return "go"
}

// name makes a name that no other test has.
func (r *rig) name(what string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return fmt.Sprintf("%s%d", what, r.next)
}

// client makes a peer connect, to servers as a connect string says, and
// disconnect when the test has ended. More can be said after it: namespace and
// credentials, "-" for none.
func (p *peer) client(t *testing.T, servers string, more ...string) string {
	t.Helper()
	name := shared.name("c")
	for len(more) < 2 {
		more = append(more, "-")
	}
	p.do(t, "client", name, servers, sessionTimeout.Milliseconds(), more[0], more[1])
	t.Cleanup(func() {
		select {
		case <-p.ended:
		default:
			p.do(t, "close", name)
		}
	})
	return name
}

// chroot is a place of a test's own, and a connect string that begins there.
func chroot(t *testing.T) (path, servers string) {
	t.Helper()
	path = "/" + shared.name("t")
	_, err := shared.admin.Create(t.Context(), path, nil, framework.Persistent)
	require.NoError(t, err)
	return path, shared.zk.ConnectString() + path
}
