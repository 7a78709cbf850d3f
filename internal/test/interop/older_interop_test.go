//go:build interop

package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kazoo with Curator's form of names, go-zookeeper's own lock, Curator and ours
// stand in one queue.
func TestFourLibraries(t *testing.T) {
	below, _ := chroot(t)
	servers := shared.zk.ConnectString() // the raw connection knows no chroot
	python, err := shared.startPeer("python")
	require.NoError(t, err)
	defer python.stop()
	path := below + "/four"
	type running struct {
		p    *peer
		load string
	}
	var loads []running
	for _, l := range []struct {
		p      *peer
		recipe string
	}{
		{shared.peers["go"][0], "mutex"}, {shared.peers["go"][1], "go-zookeeper"}, {shared.peers["java"][0], "mutex"}, {python, "mutex"},
	} {
		name := shared.name("l")
		l.p.do(t, "load", name, l.p.client(t, servers), l.recipe, path, workers)
		loads = append(loads, running{l.p, name})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, shared.witness.until(ctx, path, func(c roundCounts) bool {
		return c.between("go", "python") >= 50 && c.between("python", "java") >= 50 && c.between("java", "go") >= 50
	}))
	for _, l := range loads {
		assert.NotEqual(t, "0", l.p.do(t, "stop", l.load))
	}
	assert.Empty(t, shared.witness.violations())
	counted := shared.witness.counts(path)
	shared.row(t, "mutex, zk.Lock and kazoo", counted)
	t.Logf("handed over: %v", counted.handovers)
	nothingLeft(t, below)
}

// kazoo as it comes has names of its own, which nobody else counts: it stands
// in another queue under the same path. Told of Curator's names it waits for the
// others. We refuse a path where it came before us.
func TestKazooAsItComes(t *testing.T) {
	_, servers := chroot(t)
	python, err := shared.startPeer("python")
	require.NoError(t, err)
	defer python.stop()
	g := shared.peers["go"][0]
	gc, pc := g.client(t, servers), python.client(t, servers)
	require.Equal(t, "true", g.do(t, "take", gc, gc, "mutex", "/l", -1, 1))
	assert.Equal(t, "true", python.do(t, "take", "a", pc, "kazoo", "/l", 1000, 1), "both are inside")
	python.do(t, "give", "a", pc, "kazoo", "/l")
	assert.Equal(t, "false", python.do(t, "take", "a", pc, "one-sided", "/l", 300, 1), "it waits for us")
	assert.Equal(t, "false", python.do(t, "take", "a", pc, "mutex", "/l", 300, 1))
	g.do(t, "give", gc, gc, "mutex", "/l")

	require.Equal(t, "true", python.do(t, "take", "a", pc, "one-sided", "/l", 5000, 1))
	_, err = g.begin("take", gc, gc, "mutex", "/l", 1000, 1).wait(patience)
	assert.ErrorContains(t, err, "a kazoo lock", "and we do not stand beside it")
	python.do(t, "give", "a", pc, "one-sided", "/l")

	require.Equal(t, "true", python.do(t, "take", "a", pc, "mutex", "/l", 5000, 1))
	assert.Equal(t, "false", g.do(t, "take", gc, gc, "mutex", "/l", 300, 1), "with Curator's names we do")
	python.do(t, "give", "a", pc, "mutex", "/l")
	require.Equal(t, "true", g.do(t, "take", gc, gc, "mutex", "/l", 5000, 1))
	g.do(t, "give", gc, gc, "mutex", "/l")
}
