package kit

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Failure is something that happens to a client at one of its requests. Cancel ends the
// context of the caller.
type Failure func(t testing.TB, srv *zktest.Server, c *framework.Client, cancel func()) zktest.Fault

// Failures are all that can happen at a request. It is cut before or after it was
// applied, or its reply is cut short or left out. The server refuses it with each code that a client
// can see. Meanwhile the caller gives up, the client is closed, its session expires or
// an operator deletes its nodes.
func Failures() map[string]Failure {
	all := map[string]Failure{
		"cut before":        always(zktest.CutBefore()),
		"cut after":         always(zktest.CutAfter()),
		"part of the reply": always(zktest.CutReply(7)),
		"no reply":          always(zktest.DropReply()),
		"cancelled": func(_ testing.TB, _ *zktest.Server, _ *framework.Client, cancel func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { cancel() })
		},
		"closed": func(_ testing.TB, _ *zktest.Server, c *framework.Client, _ func()) zktest.Fault {
			return zktest.Call(func(zktest.Request) { go func() { _ = c.Close() }() })
		},
		"expired": func(_ testing.TB, srv *zktest.Server, c *framework.Client, _ func()) zktest.Fault {
			id := c.SessionID()
			return zktest.Call(func(zktest.Request) { _ = srv.ExpireSession(id) })
		},
		"nodes deleted": func(t testing.TB, srv *zktest.Server, c *framework.Client, _ func()) zktest.Fault {
			t.Helper()
			id, operator := c.SessionID(), Connect(t, srv)
			return zktest.Call(func(zktest.Request) {
				for _, node := range srv.Ephemerals(id) {
					_ = operator.Delete(context.Background(), node, framework.AnyVersion)
				}
			})
		},
	}
	for _, code := range []int32{-4, -5, -6, -7, -8, -101, -102, -110, -112, -118, -119, -122, -127} {
		all[fmt.Sprint("code ", code)] = always(zktest.Fail(code))
	}
	return all
}

func always(f zktest.Fault) Failure {
	return func(testing.TB, *zktest.Server, *framework.Client, func()) zktest.Fault { return f }
}

// Moments are the moments of a sweep, from 0 to most-1: all of them, or every eighth. With
// which one it begins depends on the test's name, so the tests of a sweep share them out.
func Moments(t testing.TB, most int, all bool) iter.Seq[int] { return sample(t, 0, most, 8, all) }

// Requests are the numbers of the requests of a sweep, from 1 to most-1: all of them, or
// every third, begun as Moments does. Who sweeps stops behind the last request.
func Requests(t testing.TB, most int, all bool) iter.Seq[int] { return sample(t, 1, most, 3, all) }

func sample(t testing.TB, begin, end, step int, all bool) iter.Seq[int] {
	if all {
		step = 1
	}
	name := fnv.New32a()
	_, _ = name.Write([]byte(t.Name()))
	begin += int(name.Sum32() % uint32(step))
	return func(yield func(int) bool) {
		for i := begin; i < end && yield(i); i += step {
		}
	}
}

// At is at which requests of a client the failure of a name can happen. Nothing can be
// done about a server that says of a node it has that it has been deleted.
func At(failure string) func(zktest.Request) bool {
	return func(r zktest.Request) bool {
		return r.Op != "ping" && r.Op != "connect" && (failure != "code -101" || r.Op != "delete" && r.Op != "multi")
	}
}

// Tried prints what a sweep has tried, a line for each row: what happened and where.
// A leak would have failed the test.
func Tried(t testing.TB, title string, tried map[[2]string]int) {
	t.Helper()
	total, last := 0, ""
	for _, key := range slices.SortedFunc(maps.Keys(tried), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if key[0] != last {
			_, _ = fmt.Fprintf(t.Output(), "\nsweep: %s: %-18s", title, key[0])
		}
		_, _ = fmt.Fprintf(t.Output(), "  %s %d", key[1], tried[key])
		total, last = total+tried[key], key[0]
	}
	_, _ = fmt.Fprintf(t.Output(), "\nsweep: %s: %d in all, 0 leaks\n", title, total)
}
