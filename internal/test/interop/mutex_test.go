//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
)

var languages = []string{"go", "java"}

// pairs runs a test for each language against each.
func pairs(t *testing.T, fn func(t *testing.T, one, two string)) {
	for _, one := range languages {
		for _, two := range languages {
			t.Run(one+"-"+two, func(t *testing.T) { fn(t, one, two) })
		}
	}
}

// queued waits until n nodes stand below a path.
func queued(t *testing.T, path string, n int) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%d nodes below %s", n, path), func() error {
		names, _, err := shared.admin.Children(t.Context(), path)
		if err == nil && len(names) != n {
			err = fmt.Errorf("%q", names)
		}
		return err
	})
}

// Waiters of both languages are served in the order in which they came.
func TestQueueOrder(t *testing.T) {
	for _, recipe := range []string{"mutex", "write", "semaphore-mutex"} {
		t.Run(recipe, func(t *testing.T) {
			below, servers := chroot(t)
			queue, already := below+"/l", 1
			if recipe == "semaphore-mutex" {
				queue, already = below+"/l/locks", 0 // the holder has a lease and no place
			}
			type waiter struct {
				p             *peer
				client, actor string
				got           *reply
			}
			var line []waiter
			for i := range 9 {
				p := shared.peers[languages[i%2]][i/2%2]
				w := waiter{p: p, client: p.client(t, servers), actor: shared.name("a")}
				w.got = p.begin("take", w.actor, w.client, recipe, "/l", -1, 1)
				if i == 0 {
					assert.Equal(t, "true", w.got.ok(t))
				}
				queued(t, queue, i+already)
				line = append(line, w)
			}
			for i, w := range line {
				if i > 0 {
					assert.Equal(t, "true", w.got.ok(t))
				}
				for _, later := range line[i+1:] {
					later.got.pending(t, "served before its turn")
				}
				w.p.do(t, "give", w.actor, w.client, recipe, "/l")
			}
			nothingLeft(t, below)
		})
	}
}

// A try that comes to nothing leaves nothing behind, and the next waiter does
// not trip over it.
func TestTimedTry(t *testing.T) {
	pairs(t, func(t *testing.T, one, two string) {
		for _, recipe := range []string{"mutex", "read", "semaphore-mutex"} {
			below, servers := chroot(t)
			p, q := shared.peers[one][0], shared.peers[two][1]
			pc, qc := p.client(t, servers), q.client(t, servers)
			held := recipe
			if recipe == "read" {
				held = "write"
			}
			require.Equal(t, "true", p.do(t, "take", "h"+pc, pc, held, "/l", -1, 1))
			for _, ms := range []int{0, 150} {
				assert.Equal(t, "false", q.do(t, "take", "w"+qc, qc, recipe, "/l", ms, 1), recipe)
			}
			kit.Eventually(t, "only the holder's node is left", func() error {
				left, err := ephemerals(t, below)
				if err == nil && len(left) != 1 {
					err = fmt.Errorf("%q", left)
				}
				return err
			})
			p.do(t, "give", "h"+pc, pc, held, "/l")
			require.Equal(t, "true", q.do(t, "take", "w"+qc, qc, recipe, "/l", 5000, 1))
			q.do(t, "give", "w"+qc, qc, recipe, "/l")
			nothingLeft(t, below)
		}
	})
}

// The lock of a process that was killed passes to the other language within the
// session timeout and two ticks, and so does the place of a waiter.
func TestKilled(t *testing.T) {
	for _, victim := range languages {
		t.Run(victim, func(t *testing.T) {
			below, servers := chroot(t)
			p, err := shared.startPeer(victim)
			require.NoError(t, err)
			defer p.stop()
			behind, err := shared.startPeer(victim)
			require.NoError(t, err)
			defer behind.stop()
			pc, bc := p.client(t, servers), behind.client(t, servers)
			q := shared.peers[other(victim)][0]
			qc := q.client(t, servers)
			require.Equal(t, "true", p.do(t, "take", "a", pc, "mutex", "/l", -1, 1))
			behind.begin("take", "a", bc, "mutex", "/l", -1, 1)
			queued(t, below+"/l", 2)
			got := q.begin("take", qc, qc, "mutex", "/l", -1, 1)
			queued(t, below+"/l", 3)
			killed := time.Now()
			p.kill()
			behind.kill()
			assert.Equal(t, "true", got.ok(t))
			passed := time.Since(killed)
			t.Logf("passed on %v after the kill, session timeout %v", passed.Round(time.Millisecond), sessionTimeout)
			assert.LessOrEqual(t, passed, sessionTimeout+3*tick)
			q.do(t, "give", qc, qc, "mutex", "/l")
			nothingLeft(t, below)
		})
	}
}

// A session that ends on the servers frees its lock for the other language. Go
// knows at once, and if it hears nothing, it knows before a server says so.
// Curator's mutex goes on saying that it is acquired.
func TestExpired(t *testing.T) {
	for _, victim := range languages {
		for _, how := range []string{"expired", "silent"} {
			t.Run(victim+"-"+how, func(t *testing.T) {
				below, servers := chroot(t)
				f := newFront(t)
				p, q := shared.peers[victim][0], shared.peers[other(victim)][0]
				pc, qc := p.client(t, f.addr()+below), q.client(t, servers)
				require.Equal(t, "true", p.do(t, "take", pc, pc, "mutex", "/l", -1, 1))
				require.Equal(t, "true", p.do(t, "held", pc, pc, "mutex", "/l"))
				got := q.begin("take", qc, qc, "mutex", "/l", -1, 1)
				queued(t, below+"/l", 2)
				session := p.do(t, "session", pc)
				if how == "silent" {
					f.net.Freeze()
				} else {
					f.expire(t, session)
				}
				require.Equal(t, "true", got.ok(t))
				if victim == "go" && how == "silent" {
					assert.Equal(t, "false", p.do(t, "held", pc, pc, "mutex", "/l"), "the belief has ended before the grant")
				}
				f.net.Thaw()
				switch victim {
				case "go":
					kit.Eventually(t, "the hold is lost", func() error {
						if held := p.do(t, "held", pc, pc, "mutex", "/l"); held != "false" {
							return fmt.Errorf("held: %s", held)
						}
						return nil
					})
					_, err := p.begin("give", pc, pc, "mutex", "/l").wait(patience)
					assert.ErrorContains(t, err, "lock lost")
				case "java":
					assert.Equal(t, "true", p.do(t, "held", pc, pc, "mutex", "/l"), "Curator does not notice (CURATOR-206)")
					p.do(t, "give", pc, pc, "mutex", "/l")
				}
				q.do(t, "give", qc, qc, "mutex", "/l")
				nothingLeft(t, below)
			})
		}
	}
}

// Either side can ask for the lock back, of a participant that either side
// lists.
func TestRevocation(t *testing.T) {
	pairs(t, func(t *testing.T, one, two string) {
		below, servers := chroot(t)
		p, q := shared.peers[one][0], shared.peers[two][1]
		pc, qc := p.client(t, servers), q.client(t, servers)
		lock := "/" + shared.name("l")
		p.do(t, "revocable", pc, "mutex", lock)
		require.Equal(t, "true", p.do(t, "take", pc, pc, "mutex", lock, -1, 1))
		got := q.begin("take", qc, qc, "mutex", lock, -1, 1)
		queued(t, below+lock, 2)
		first, _, _ := strings.Cut(q.do(t, "participants", qc, "mutex", lock), ",")
		q.do(t, "revoke", qc, first)
		p.awaitAsked(t, lock)
		got.pending(t, "asking does not take it away")
		p.do(t, "give", pc, pc, "mutex", lock)
		require.Equal(t, "true", got.ok(t))
		q.do(t, "give", qc, qc, "mutex", lock)
		nothingLeft(t, below)
	})
}

// Both languages list the same participants in the same order.
func TestParticipants(t *testing.T) {
	below, servers := chroot(t)
	var all []func()
	for i := range 6 {
		p := shared.peers[languages[i%2]][i/2%2]
		c := p.client(t, servers)
		got := p.begin("take", c, c, "mutex", "/l", -1, 1)
		queued(t, below+"/l", i+1)
		all = append(all, func() {
			require.Equal(t, "true", got.ok(t))
			p.do(t, "give", c, c, "mutex", "/l")
		})
	}
	lists := make(map[string]string)
	for _, language := range languages {
		p := shared.peers[language][0]
		lists[language] = p.do(t, "participants", p.client(t, servers), "mutex", "/l")
	}
	assert.Equal(t, lists["java"], lists["go"])
	assert.Len(t, strings.Split(lists["go"], ","), 6)
	for _, give := range all {
		give()
	}
	nothingLeft(t, below)
}

// A path is the same lock, however chroot and namespace make it up.
func TestNamespacesAndChroots(t *testing.T) {
	below, _ := chroot(t)
	_, err := shared.admin.Create(t.Context(), below+"/team", nil, framework.Persistent)
	require.NoError(t, err)
	hosts := shared.zk.ConnectString()
	ways := []struct{ servers, namespace, path string }{
		{hosts, "-", below + "/team/app/l"},
		{hosts + below, "-", "/team/app/l"},
		{hosts + below + "/team", "app", "/l"},
		{hosts, below[1:] + "/team", "/app/l"},
	}
	pairs(t, func(t *testing.T, one, two string) {
		p, q := shared.peers[one][0], shared.peers[two][1]
		for i, way := range ways {
			far := ways[(i+1)%len(ways)]
			pc, qc := p.client(t, way.servers, way.namespace), q.client(t, far.servers, far.namespace)
			require.Equal(t, "true", p.do(t, "take", pc, pc, "mutex", way.path, -1, 1))
			assert.Equal(t, "false", q.do(t, "take", qc, qc, "mutex", far.path, 100, 1), "%v and %v", way, far)
			got := q.begin("take", qc, qc, "mutex", far.path, -1, 1)
			queued(t, below+"/team/app/l", 2)
			p.do(t, "give", pc, pc, "mutex", way.path)
			require.Equal(t, "true", got.ok(t))
			q.do(t, "give", qc, qc, "mutex", far.path)
		}
	})
	nothingLeft(t, below)
}

// With access lists for one user both languages share the lock, and who has not
// this user's credentials is refused by both.
func TestAccessLists(t *testing.T) {
	pairs(t, func(t *testing.T, one, two string) {
		below, servers := chroot(t)
		p, q := shared.peers[one][0], shared.peers[two][1]
		pc, qc := p.client(t, servers, "-", "user:secret"), q.client(t, servers, "-", "user:secret")
		require.Equal(t, "true", p.do(t, "take", pc, pc, "mutex", "/private/l", -1, 1))
		got := q.begin("take", qc, qc, "mutex", "/private/l", -1, 1)
		kit.Eventually(t, "it waits", func() error {
			all := strings.Split(q.do(t, "participants", qc, "mutex", "/private/l"), ",")
			if len(all) != 2 {
				return fmt.Errorf("%q", all)
			}
			return nil
		})
		for _, stranger := range languages {
			s := shared.peers[stranger][0]
			sc := s.client(t, servers)
			_, err := s.begin("take", sc, sc, "mutex", "/private/l", 1000, 1).wait(patience)
			require.Error(t, err)
			assert.True(t, strings.Contains(err.Error(), "NoAuth") || strings.Contains(err.Error(), "not authenticated"), err.Error())
		}
		p.do(t, "give", pc, pc, "mutex", "/private/l")
		require.Equal(t, "true", got.ok(t))
		q.do(t, "give", qc, qc, "mutex", "/private/l")
		assert.Empty(t, q.do(t, "participants", qc, "mutex", "/private/l"))
		_, _, err := shared.admin.Children(t.Context(), below+"/private")
		assert.ErrorIs(t, err, framework.ErrNoAuth, "the parents are closed as well")
	})
}

// What the guide shows of Java and no load runs.
func TestJavaSnippets(t *testing.T) {
	_, servers := chroot(t)
	shared.peers["java"][0].do(t, "snippets", servers)
}

// Either language reads what the other has compressed.
func TestCompression(t *testing.T) {
	pairs(t, func(t *testing.T, one, two string) {
		_, servers := chroot(t)
		p, q := shared.peers[one][0], shared.peers[two][1]
		pc, qc := p.client(t, servers), q.client(t, servers)
		text := strings.Repeat("some-text-", 1000)
		p.do(t, "put", pc, "/text", text)
		assert.Equal(t, text, q.do(t, "read", qc, "/text"))
	})
}
