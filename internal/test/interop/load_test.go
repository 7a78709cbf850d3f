//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/test/realzk"
)

const (
	tick           = 500 * time.Millisecond
	sessionTimeout = 5 * time.Second
	workers        = 2 // of each process
)

// Two processes of each language take one lock again and again, until it has
// often passed between the languages. The witness sees who is inside.
func TestLoads(t *testing.T) {
	for _, tc := range []struct {
		recipe string
		passes int // from Go to Java and back, together
		paths  map[string]string
	}{
		{"mutex", 2000, nil},
		{"locker", 200, nil},
		{"reentrant", 200, nil},
		{"semaphore-mutex", 400, nil},
		{"semaphore", 400, nil},
		{"read-write", 400, nil},
		{"latch", 1000, nil},
		{"selector", 1000, nil},
		{"multi", 400, map[string]string{"go": "/a,/b", "java": "/a,/b"}},
		// Each has to give way to the other here, which takes its time.
		{"multi", 100, map[string]string{"go": "/a,/b", "java": "/b,/a"}},
	} {
		what, paths := tc.recipe, tc.paths
		if paths == nil {
			paths = map[string]string{"go": "/a", "java": "/a"}
		} else {
			what += " " + strings.ReplaceAll(paths["go"]+" and "+paths["java"], "/", "")
		}
		t.Run(what, func(t *testing.T) {
			counted := contend(t, standalone(), tc.recipe, paths, tc.passes)
			shared.row(t, what, counted)
			if tc.recipe == "semaphore" {
				assert.Equal(t, 3, counted.together["3"], "all leases were out at a time")
				assert.True(t, counted.mixed, "to both languages")
			}
		})
	}
}

// On an ensemble the peers speak to different members, of which some are behind.
func TestLoadsOnAnEnsemble(t *testing.T) {
	e := realzk.StartT(t, realzk.Options{Servers: 3, Tick: tick})
	admin, err := framework.Connect(t.Context(), framework.Config{ConnectString: e.ConnectString()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, admin.Close()) }()
	for _, recipe := range []string{"mutex", "semaphore", "read-write"} {
		t.Run(recipe, func(t *testing.T) {
			paths := map[string]string{"go": "/a", "java": "/a"}
			shared.row(t, recipe+", ensemble of three", contend(t, servers{e.ConnectString(), admin}, recipe, paths, 400))
		})
	}
}

// One client in Go takes many different locks at the same moment, so that its requests
// leave together. Java wants some of them too.
func TestManyLocksBesideJava(t *testing.T) {
	const locks, contended, passes = 40, 4, 200
	where := standalone()
	below := "/" + shared.name("t")
	_, err := where.admin.Create(t.Context(), below, nil, framework.Persistent)
	require.NoError(t, err)
	name := "/" + shared.name("many")
	goPeer, javaPeer := shared.peers["go"][0], shared.peers["java"][0]
	inGo, inJava := goPeer.client(t, where.hosts+below), javaPeer.client(t, where.hosts+below)
	var stops []func() *reply
	load := func(p *peer, client, path string) {
		id := shared.name("l")
		p.do(t, "load", id, client, "mutex", path, workers)
		stops = append(stops, func() *reply { return p.begin("stop", id) })
	}
	for i := range locks {
		path := fmt.Sprint(name, "-", i)
		load(goPeer, inGo, path)
		if i < contended {
			load(javaPeer, inJava, path)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	first := fmt.Sprint(name, "-0")
	err = shared.witness.until(ctx, first, func(c roundCounts) bool {
		return c.between("go", "java")+c.between("java", "go") >= passes
	})
	require.NoError(t, err)
	var replies []*reply
	for _, stop := range stops {
		replies = append(replies, stop())
	}
	for _, r := range replies {
		assert.NotEqual(t, "0", r.ok(t), "each lock had its turns")
	}
	assert.Empty(t, shared.witness.violations())
	where.nothingLeft(t, below)
	shared.row(t, "mutex, one of many", shared.witness.counts(first))
}

// servers are where a load takes place, and who sees what is left there.
type servers struct {
	hosts string
	admin *framework.Client
}

func standalone() servers { return servers{shared.zk.ConnectString(), shared.admin} }

// contend runs a load in all peers until the lock has passed between the
// languages so often, and looks at what was seen and what is left.
func contend(t *testing.T, where servers, recipe string, paths map[string]string, passes int) roundCounts {
	t.Helper()
	below := "/" + shared.name("t")
	_, err := where.admin.Create(t.Context(), below, nil, framework.Persistent)
	require.NoError(t, err)
	tops := strings.Split(paths["go"], ",")
	// Peers know the resource as the lock's path, which is below their chroot.
	name := "/" + shared.name(recipe)
	for language := range paths {
		paths[language] = strings.ReplaceAll(paths[language], "/", name)
	}
	first := name + tops[0][1:]
	type running struct {
		p    *peer
		load string
	}
	var loads []running
	for _, language := range []string{"go", "java"} {
		for _, p := range shared.peers[language] {
			l := running{p, shared.name("l")}
			p.do(t, "load", l.load, p.client(t, where.hosts+below), recipe, paths[language], workers)
			loads = append(loads, l)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	err = shared.witness.until(ctx, first, func(c roundCounts) bool {
		there, back := c.between("go", "java"), c.between("java", "go")
		return there+back >= passes && there > 0 && back > 0
	})
	if err != nil {
		nodes, _ := where.ephemerals(t, below)
		require.NoError(t, err, "stuck with %q", nodes)
	}
	stops := make([]*reply, len(loads))
	for i, l := range loads {
		stops[i] = l.p.begin("stop", l.load)
	}
	for _, s := range stops {
		assert.NotEqual(t, "0", s.ok(t), "each process had its turns")
	}
	assert.Empty(t, shared.witness.violations())
	where.nothingLeft(t, below)
	return shared.witness.counts(first)
}

func ephemerals(t *testing.T, path string) ([]string, error) {
	t.Helper()
	return standalone().ephemerals(t, path)
}

func nothingLeft(t *testing.T, path string) {
	t.Helper()
	standalone().nothingLeft(t, path)
}

// ephemerals lists all nodes below a path that belong to a session.
func (s servers) ephemerals(t *testing.T, path string) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	names, stat, err := s.admin.Children(ctx, path)
	if errors.Is(err, framework.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	if stat.EphemeralOwner != 0 {
		all = append(all, fmt.Sprintf("%s of %#x", path, stat.EphemeralOwner))
	}
	for _, n := range names {
		more, err := s.ephemerals(t, path+"/"+n)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// nothingLeft waits until no session has a node below a path, while the clients
// are still there.
func (s servers) nothingLeft(t *testing.T, path string) {
	t.Helper()
	kit.Eventually(t, "nothing is left", func() error {
		left, err := s.ephemerals(t, path)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%q", left)
		}
		return err
	})
}
