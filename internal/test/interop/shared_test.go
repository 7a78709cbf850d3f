//go:build interop

package interop

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
)

// Readers of both languages are inside together; a writer of either waits for
// them, and later readers for it.
func TestReadersTogether(t *testing.T) {
	pairs(t, func(t *testing.T, one, two string) {
		below, servers := chroot(t)
		p, q := shared.peers[one][0], shared.peers[two][1]
		pc, qc := p.client(t, servers), q.client(t, servers)
		require.Equal(t, "true", p.do(t, "take", "r"+pc, pc, "read", "/l", -1, 1))
		require.Equal(t, "true", q.do(t, "take", "r"+qc, qc, "read", "/l", -1, 1))
		writer := q.begin("take", "w"+qc, qc, "write", "/l", -1, 1)
		queued(t, below+"/l", 3)
		late := p.begin("take", "late"+pc, pc, "read", "/l", -1, 1)
		queued(t, below+"/l", 4)
		p.do(t, "give", "r"+pc, pc, "read", "/l")
		queued(t, below+"/l", 3)
		writer.pending(t, "a writer beside a reader")
		q.do(t, "give", "r"+qc, qc, "read", "/l")
		require.Equal(t, "true", writer.ok(t))
		late.pending(t, "a reader beside a writer")
		q.do(t, "give", "w"+qc, qc, "write", "/l")
		require.Equal(t, "true", late.ok(t))
		p.do(t, "give", "late"+pc, pc, "read", "/l")
		nothingLeft(t, below)
	})
}

// digits are what a node's number is in the order of its queue.
func digits(name string) string { return name[max(0, len(name)-10):] }

// A writer that has become a reader keeps waiting writers out. Since 5.6 Curator
// gives the read node the number of the write node (CURATOR-621). The Curator of a
// run may be older. Its read nodes then stand behind the waiting writer, which gets
// in beside the reader. That is so for writers in Go and in Java, since nothing in
// the queue shows them that the reader came first. This test pins it.
func TestDowngrade(t *testing.T) {
	pairs(t, func(t *testing.T, one, two string) {
		below, servers := chroot(t)
		p, q := shared.peers[one][0], shared.peers[two][1]
		pc, qc := p.client(t, servers), q.client(t, servers)
		require.Equal(t, "true", p.do(t, "take", pc, pc, "write", "/l", -1, 1))
		writer := q.begin("take", qc, qc, "write", "/l", -1, 1)
		queued(t, below+"/l", 2)
		require.Equal(t, "true", p.do(t, "take", pc, pc, "read", "/l", -1, 1))
		names, _, err := shared.admin.Children(t.Context(), below+"/l")
		require.NoError(t, err)
		numbers := make(map[string]int)
		for _, n := range names {
			numbers[digits(n)]++
			t.Log(n)
		}
		p.do(t, "give", pc, pc, "write", "/l")
		if len(numbers) == 2 { // two nodes of the downgrade share a number
			queued(t, below+"/l", 2)
			writer.pending(t, "a writer beside a downgraded reader")
			_, err := writer.wait(200 * time.Millisecond)
			require.ErrorIs(t, err, errNoAnswer)
			p.do(t, "give", pc, pc, "read", "/l")
			require.Equal(t, "true", writer.ok(t))
		} else {
			require.Equal(t, "java", one, "ours has the number of its write node")
			require.Equal(t, "true", writer.ok(t))
			t.Logf("CURATOR-621: this Curator's downgrade lets a waiting writer (%s) in", two)
			p.do(t, "give", pc, pc, "read", "/l")
		}
		q.do(t, "give", qc, qc, "write", "/l")
		nothingLeft(t, below)
	})
}

// Leases are counted across languages, several at once are all or none, and the
// order of the queue is kept.
func TestLeases(t *testing.T) {
	pairs(t, func(t *testing.T, one, two string) {
		below, servers := chroot(t)
		p, q := shared.peers[one][0], shared.peers[two][1]
		pc, qc := p.client(t, servers), q.client(t, servers)
		require.Equal(t, "true", p.do(t, "take", pc, pc, "semaphore", "/s", -1, 2))
		require.Equal(t, "true", q.do(t, "take", qc, qc, "semaphore", "/s", -1, 1))
		assert.Equal(t, "false", q.do(t, "take", "x"+qc, qc, "semaphore", "/s", 150, 1), "three are out")
		queued(t, below+"/s/locks", 0)
		both := q.begin("take", "two"+qc, qc, "semaphore", "/s", -1, 2)
		queued(t, below+"/s/locks", 1)
		lc := p.client(t, servers) // who has a lease already would be let through
		late := p.begin("take", lc, lc, "semaphore", "/s", -1, 1)
		queued(t, below+"/s/locks", 2)
		q.do(t, "give", qc, qc, "semaphore", "/s")
		_, err := both.wait(100 * time.Millisecond)
		require.ErrorIs(t, err, errNoAnswer, "both or none")
		late.pending(t, "it is not overtaken")
		p.do(t, "give", pc, pc, "semaphore", "/s")
		require.Equal(t, "true", both.ok(t))
		require.Equal(t, "true", late.ok(t))
		q.do(t, "give", "two"+qc, qc, "semaphore", "/s")
		p.do(t, "give", lc, lc, "semaphore", "/s")
		nothingLeft(t, below)
	})
}

// A Go MultiLock and a Java one stand in each other's way, and both get their turn.
// Java names the members in either order, and another owner has either of them
// first. The loads do this hundreds of times; here both are known to wait.
func TestMultiLocksInEachOthersWay(t *testing.T) {
	for _, order := range []string{"/a,/b", "/b,/a"} {
		for _, taken := range []string{"/a", "/b"} {
			t.Run(strings.ReplaceAll(order+" behind "+taken, "/", ""), func(t *testing.T) {
				below, servers := chroot(t)
				g, j := shared.peers["go"][0], shared.peers["java"][0]
				gc, jc := g.client(t, servers), j.client(t, servers)
				third := shared.peers["java"][1]
				tc := third.client(t, servers)
				require.Equal(t, "true", third.do(t, "take", tc, tc, "mutex", taken, -1, 1))
				ours := g.begin("take", gc, gc, "multi", "/a,/b", -1, 1)
				stand(t, below, g.do(t, "session", gc), 1)
				theirs := j.begin("take", jc, jc, "multi", order, -1, 1)
				stand(t, below, j.do(t, "session", jc), 1)
				// Time to get its second place, if ours lets it.
				_, err := theirs.wait(500 * time.Millisecond)
				require.ErrorIs(t, err, errNoAnswer)
				third.do(t, "give", tc, tc, "mutex", taken)

				release := map[*reply]func(){
					ours:   func() { g.do(t, "give", gc, gc, "multi", "/a,/b") },
					theirs: func() { j.do(t, "give", jc, jc, "multi", order) },
				}
				first, second := ours, theirs
				select {
				case answer := <-ours.ch:
					ours.ch <- answer
				case answer := <-theirs.ch:
					theirs.ch <- answer
					first, second = theirs, ours
				case <-time.After(patience):
					require.Fail(t, "they wait for each other")
				}
				require.Equal(t, "true", first.ok(t))
				second.pending(t, "both")
				release[first]()
				require.Equal(t, "true", second.ok(t))
				release[second]()
				nothingLeft(t, below)
			})
		}
	}
}

// stand waits until a session has so many nodes below a path.
func stand(t *testing.T, below, session string, n int) {
	t.Helper()
	id, err := strconv.ParseInt(session, 10, 64)
	require.NoError(t, err)
	kit.Eventually(t, "the places are taken", func() error {
		all, err := ephemerals(t, below)
		if err != nil {
			return err
		}
		have := 0
		for _, node := range all {
			if strings.HasSuffix(node, fmt.Sprintf(" of %#x", id)) {
				have++
			}
		}
		if have < n {
			return fmt.Errorf("%d of %d: %q", have, n, all)
		}
		return nil
	})
}
