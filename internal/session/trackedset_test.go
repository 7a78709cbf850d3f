package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func after(seconds int) time.Duration { return time.Duration(seconds) * time.Second }

func someClaims(n int) (*trackedNodes, []*TrackedNode) {
	set := new(trackedNodes)
	var all []*TrackedNode
	for i := range n {
		node := &TrackedNode{path: fmt.Sprint("/", i), state: NodeHeld, since: after(i)}
		set.add(node)
		all = append(all, node)
	}
	return set, all
}

func TestClaimsAreCheckedInTurn(t *testing.T) {
	set, all := someClaims(5)
	three := Room{3, 1000}
	assert.Empty(t, set.pick(three, true), "nothing to verify")
	assert.Equal(t, all[:3], set.pick(three, false))
	assert.Equal(t, []*TrackedNode{all[3], all[4], all[0]}, set.pick(three, false), "those that were not checked for longest")
	set.grade(all[2], NodeUncertain, false)
	set.grade(all[0], NodeUncertain, true)
	assert.True(t, set.hasUncertain())
	assert.Equal(t, []*TrackedNode{all[2], all[1], all[3]}, set.pick(three, false), "those in doubt first, and none that cannot be checked")
	assert.False(t, set.hasUncertain(), "it is being checked")
	assert.NotContains(t, set.pick(three, false), all[2])
	set.checkDone(all)
	assert.Equal(t, all[2:3], set.pick(three, true), "the check did not tell")
	assert.Equal(t, []*TrackedNode{all[0]}, set.unseenNodes())
	set.checkDone(all)
	for _, node := range all[1:] {
		set.remove(node)
	}
	assert.False(t, set.hasUncertain())
	assert.Equal(t, all[:1], set.pick(three, false), "unless there is no other")
	assert.Equal(t, 1, set.len())
	set.remove(all[0])
	set.remove(all[0])
	assert.Zero(t, set.len())
	assert.Empty(t, set.pick(three, false))
	assert.False(t, set.has(all[0]))
}

func TestAllClaimsWhileTheyChange(t *testing.T) {
	set, all := someClaims(4)
	set.grade(all[1], NodeHeld, true)
	assert.ElementsMatch(t, all, set.all())
	for _, node := range set.all() {
		set.grade(node, NodeUncertain, node.blind)
	}
	assert.Equal(t, []*TrackedNode{all[1]}, set.unseenNodes())
	assert.ElementsMatch(t, all, set.all())
	for _, node := range set.all() {
		set.remove(node)
	}
	assert.Zero(t, set.len())
}

func TestWatchesAreSetByAge(t *testing.T) {
	set, all := someClaims(4)
	due, next, more := set.lasted(after(1), 1000)
	assert.Equal(t, all[:2], due)
	assert.Equal(t, after(2), next)
	assert.True(t, more)
	set.requeueWatch(all[1])
	set.requeueWatch(all[2]) // has none
	set.remove(all[2])
	due, next, _ = set.lasted(after(1), 1000)
	assert.Equal(t, all[1:2], due)
	assert.Equal(t, after(3), next)
	due, _, more = set.lasted(after(9), 1000)
	assert.Equal(t, all[3:], due)
	assert.False(t, more)
}

// What the run loop and each call do must not grow with the number of tracked nodes.
func BenchmarkClaims(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set, _ := someClaims(n)
			set.lasted(after(n), 1000)
			now := after(n)
			for b.Loop() {
				node := &TrackedNode{state: NodeHeld, since: now}
				set.add(node)
				if set.hasUncertain() || set.len() != n+1 {
					b.Fatal("wrong count")
				}
				if _, _, more := set.lasted(now-watchAfter, 1000); !more {
					b.Fatal("a watch is to be set")
				}
				set.remove(node)
			}
		})
	}
}
