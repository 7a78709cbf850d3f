// Package workload has the ways in which actors take locks, for tests whose actors do so over
// and over. It also says who takes which locks in the tests of MultiLocks beside nested
// holds: one runs in virtual time, another in processes on real servers. The simulation
// draws what its actors take.
package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/recipes/locks"
)

// SemaphoreMutex is the path that is locked by a semaphore mutex. All others are locked
// by mutexes.
const SemaphoreMutex = "s"

// Actor takes locks over and over.
type Actor struct {
	Paths   []string
	Multi   bool          // takes them all in one step; otherwise one after another
	Ordered bool          // the MultiLock is Ordered, whatever the others are
	Timed   time.Duration // gives up the second step after about so long
	Like    string        // actors of different kinds that should fare the same have the same, "" for none
}

// Kind is the same for actors that should fare the same.
func (a Actor) Kind() string {
	kind := "nests "
	switch {
	case a.Ordered:
		kind = "ordered MultiLock "
	case a.Multi:
		kind = "MultiLock "
	case len(a.Paths) == 1:
		kind = "plain "
	case a.Timed > 0:
		kind = "timed "
	}
	return kind + strings.Join(a.Paths, ",")
}

// UsesSemaphoreMutex reports whether one of its locks is a semaphore mutex.
func (a Actor) UsesSemaphoreMutex() bool { return slices.Contains(a.Paths, SemaphoreMutex) }

// Crowd is MultiLocks with owners that take the same locks one after another.
type Crowd struct {
	Name   string
	Actors []Actor
}

// Crowds are the mixtures that have mutexes alone and the same MultiLocks throughout.
var Crowds = []Crowd{
	{"nesters", slices.Concat(times(1, multi("a", "b")), times(2, nest("a", "b")))},
	{"reverse", slices.Concat(times(1, multi("a", "b")), times(2, nest("b", "a")))},
	{"both, timed", []Actor{multi("a", "b"), timed("a", "b"), timed("b", "a")}},
	{"plain", slices.Concat(times(1, multi("a", "b")), times(2, nest("a")), times(2, nest("b")))},
	{"overlaps", []Actor{multi("a", "b", "c"), multi("c", "d", "b"), multi("d", "a", "c"), multi("e", "d", "a")}},
	{"reverse and plain", slices.Concat(times(2, multi("a", "b")), times(2, nest("b", "a")), times(1, nest("a")), times(1, nest("b")))},
	{"three sets", slices.Concat(alike(multi("a", "b"), multi("b", "c"), multi("c", "a")), times(2, nest("b", "a")), times(2, nest("c", "b")), times(2, nest("c", "a")))},
	{"many", slices.Concat(times(6, multi("a", "b")), times(4, nest("b", "a")))},
}

// MoreCrowds have cycles, Ordered MultiLocks, or a semaphore mutex.
var MoreCrowds = []Crowd{
	{"cycle of three", []Actor{multi("c", "a"), nest("a", "b"), nest("b", "c")}},
	{"some ordered", []Actor{ordered("a", "c"), multi("b", "c"), ordered("b", "d"), multi("a", "d")}},
	{"only multi-locks", slices.Concat(times(3, multi("a", "b")), times(3, multi("b", "a")))},
	{"with semaphore mutex", slices.Concat(times(2, multi("a", SemaphoreMutex, "b")), times(2, nest(SemaphoreMutex, "a")), times(1, nest("b", SemaphoreMutex)), times(1, nest(SemaphoreMutex)))},
}

func multi(paths ...string) Actor { return Actor{Paths: paths, Multi: true} }

func ordered(paths ...string) Actor { return Actor{Paths: paths, Multi: true, Ordered: true} }

func nest(paths ...string) Actor { return Actor{Paths: paths} }

func timed(paths ...string) Actor { return Actor{Paths: paths, Timed: 100 * time.Millisecond} }

func times(n int, a Actor) []Actor { return slices.Repeat([]Actor{a}, n) }

func alike(actors ...Actor) []Actor {
	for i := range actors {
		actors[i].Like = fmt.Sprint("one of ", len(actors), " sets")
	}
	return actors
}

// Once has the actor take its locks, run how.Inside, and give them back, as How.Once does.
// lock makes the lock of a path.
func (a Actor) Once(ctx context.Context, lock func(path string) locks.Lock, how How) (all bool, err error) {
	taken := make([]locks.Lock, len(a.Paths))
	for i, p := range a.Paths {
		taken[i] = lock(p)
	}
	if a.Timed > 0 {
		how.Wait = a.wait
	}
	return how.Once(ctx, a.way(), taken...)
}

func (a Actor) way() Way {
	switch {
	case !a.Multi:
		return Nested
	case a.Ordered:
		return Ordered
	}
	return Multi
}

// wait is how long a timed actor waits in a step.
func (a Actor) wait(step int) time.Duration {
	if step == 0 {
		return forever
	}
	return a.Timed/2 + rand.N(a.Timed)
}
