package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// fault is one thing that goes wrong. All chance in it comes from its seed, so
// that it is the same whatever else goes wrong.
type fault struct {
	At   time.Duration
	Kind string
	Seed uint64
}

func (f fault) String() string { return fmt.Sprintf("%v %s (%#x)", f.At, f.Kind, f.Seed) }

// kind is a kind of fault. do returns when it is over, and reports whether it
// has hit anything.
type kind struct {
	name    string
	weight  int
	cluster bool // needs more than one member
	do      func(w *world, r *rand.Rand) bool
}

var kinds = []kind{
	{"reply lost after apply", 5, false, (*world).loseReply},
	{"reply cut short", 2, false, func(w *world, r *rand.Rand) bool { return w.hit(r, zktest.CutReply(1+r.IntN(60))) }},
	{"request cut", 3, false, func(w *world, r *rand.Rand) bool { return w.hit(r, zktest.CutBefore()) }},
	{"connection cut", 3, false, (*world).disconnect},
	{"all connections cut", 1, false, func(w *world, _ *rand.Rand) bool { w.cluster.DisconnectAll(); return true }},
	{"member frozen", 2, false, (*world).freeze},
	{"request delayed", 4, false, func(w *world, r *rand.Rand) bool { return w.hit(r, zktest.Delay(w.span(r, 1.2))) }},
	{"latency", 1, false, (*world).slow},
	{"writes slow", 2, false, (*world).slowWrites},
	{"one-way partition of members", 2, true, (*world).partitionOneWay},
	{"one-way partition of a client", 3, false, (*world).stall},
	{"follower cut off from its leader", 3, true, (*world).cutFollower},
	{"leader stalled", 2, true, (*world).stallLeader},
	{"member killed", 2, false, (*world).kill},
	{"leader changed", 2, true, (*world).elect},
	{"follower lags", 3, true, (*world).lag},
	{"session expired by the server", 3, false, (*world).expire},
	{"client paused beyond its session", 3, false, (*world).pauseClient},
	{"own node deleted", 4, false, (*world).deleteNode},
	{"container reaped", 3, false, (*world).sweep},
	{"context cancelled", 12, false, (*world).cancel},
	{"client closed", 2, false, (*world).closeClient},
}

// onlyDrift is counted where clients are made.
const onlyDrift = "clock drift"

// scheduleOf draws what is to go wrong and when.
func scheduleOf(seed uint64) []fault {
	r := rand.New(rand.NewPCG(seed, 2))
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	all := make([]fault, 24+r.IntN(24))
	for i := range all {
		n := r.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n < 0 {
				all[i].Kind = k.name
				break
			}
		}
		all[i].At, all[i].Seed = 200*time.Millisecond+time.Duration(r.Int64N(int64(faulty))), r.Uint64()
	}
	slices.SortFunc(all, func(a, b fault) int { return cmp.Compare(a.At, b.At) })
	return all
}

// trouble makes the faults happen, and returns when the last is over.
func (w *world) trouble(schedule []fault) {
	for _, f := range schedule {
		time.Sleep(f.At - w.now())
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == f.Kind })
		if i < 0 || kinds[i].cluster && w.members == 1 {
			continue
		}
		w.jobs.Go(func() {
			w.tell("fault", "%s (%#x)", f.Kind, f.Seed)
			if kinds[i].do(w, rand.New(rand.NewPCG(f.Seed, 0))) {
				w.count(f.Kind)
				w.tell("fault", "%s (%#x): over", f.Kind, f.Seed)
			}
		})
	}
	w.jobs.Wait()
	time.Sleep(max(0, faulty+time.Second-w.now()))
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fired[what]++
}

// heal puts an end to whatever is still wrong.
func (w *world) heal() {
	w.cluster.Heal()
	for i := range w.members {
		w.cluster.Lag(i, 0)
		w.cluster.Member(i).Thaw()
	}
	for _, s := range w.slots {
		s.resume()
	}
	w.mu.Lock()
	w.rec.Healed = w.now()
	close(w.calmed)
	w.tellLocked("world", "the faults are over")
	w.mu.Unlock()
}

// span draws a time up to so many session timeouts.
func (w *world) span(r *rand.Rand, most float64) time.Duration {
	return time.Duration(r.Int64N(int64(most*float64(w.timeout))) + 1)
}

// spell lets a fault last.
func (w *world) spell(r *rand.Rand, most float64) { time.Sleep(w.span(r, most)) }

func (w *world) anySlot(r *rand.Rand) *slot { return w.slots[r.IntN(len(w.slots))] }

// hit does something to one of the next requests of a client.
func (w *world) hit(r *rand.Rand, f zktest.Fault) bool {
	s := w.anySlot(r)
	m := zktest.Match{Session: s.client().SessionID(), Nth: 1 + r.IntN(6)}
	if m.Session == 0 {
		return false
	}
	if r.IntN(2) == 0 {
		m.Op = []string{"create2", "delete", "getChildren", "multi", "getData", "sync", "setData", "setWatches"}[r.IntN(8)]
		m.Nth = 1 + r.IntN(2)
	}
	rule := w.cluster.On(m, f)
	w.spell(r, 1)
	rule.Remove()
	if rule.Fired() > 0 {
		w.tell("fault", "hit %s of %s: %v", cmp.Or(m.Op, "a request"), s.name, f)
	}
	return rule.Fired() > 0
}

func (w *world) loseReply(r *rand.Rand) bool { return w.hit(r, zktest.CutAfter()) }

func (w *world) disconnect(r *rand.Rand) bool {
	id := w.anySlot(r).client().SessionID()
	return id != 0 && w.quietly(func() error { return w.cluster.Disconnect(id) })
}

// quietly does what may find nothing to do.
func (w *world) quietly(verb func() error) bool { return verb() == nil }

func (w *world) freeze(r *rand.Rand) bool {
	m := w.cluster.Member(r.IntN(w.members))
	m.Freeze()
	w.spell(r, 1.5)
	m.Thaw()
	return true
}

func (w *world) slow(r *rand.Rand) bool {
	w.cluster.SetLatency(w.span(r, 0.05))
	w.spell(r, 1)
	w.cluster.SetLatency(0)
	return true
}

// slowWrites delays each request of a client that a majority logs, and what comes
// behind it.
func (w *world) slowWrites(r *rand.Rand) bool {
	id := w.anySlot(r).client().SessionID()
	logged := func(q zktest.Request) bool {
		return slices.Contains([]string{"create", "create2", "createContainer", "delete", "multi", "setData"}, q.Op)
	}
	rule := w.cluster.On(zktest.Match{Session: id, Func: logged}, zktest.Delay(w.span(r, 0.4)))
	w.spell(r, 4)
	rule.Remove()
	return rule.Fired() > 0
}

func (w *world) partitionOneWay(r *rand.Rand) bool {
	from := r.IntN(w.members)
	to := (from + 1 + r.IntN(w.members-1)) % w.members
	w.cluster.PartitionOneWay(from, to)
	w.spell(r, 1.5)
	w.cluster.Heal()
	return true
}

func (w *world) stall(r *rand.Rand) bool {
	id := w.anySlot(r).client().SessionID()
	if id == 0 {
		return false
	}
	w.cluster.Stall(id, []zktest.Direction{zktest.FromClient, zktest.ToClient}[r.IntN(2)])
	w.spell(r, 1.5)
	w.cluster.Unstall(id)
	return true
}

func (w *world) cutFollower(r *rand.Rand) bool {
	leader := w.cluster.Leader()
	if leader < 0 {
		return false
	}
	cut := (leader + 1 + r.IntN(w.members-1)) % w.members
	var rest []int
	for i := range w.members {
		if i != cut {
			rest = append(rest, i)
		}
	}
	w.cluster.Partition(rest, []int{cut})
	time.Sleep(time.Duration(r.Int64N(int64(time.Duration(w.syncLimit+2) * w.tick))))
	w.cluster.Heal()
	return true
}

func (w *world) stallLeader(r *rand.Rand) bool {
	leader := w.cluster.Leader()
	if leader < 0 {
		return false
	}
	m := w.cluster.Member(leader)
	m.Freeze()
	w.spell(r, 1.5)
	m.Thaw()
	return true
}

func (w *world) kill(r *rand.Rand) bool {
	m := w.cluster.Member(r.IntN(w.members))
	_ = m.Stop()
	w.spell(r, 1.2)
	_ = m.Restart()
	return true
}

func (w *world) elect(r *rand.Rand) bool {
	w.cluster.Elect(r.IntN(w.members))
	return true
}

func (w *world) lag(r *rand.Rand) bool {
	i := r.IntN(w.members)
	w.cluster.Lag(i, w.span(r, 0.5))
	w.spell(r, 1.5)
	w.cluster.Lag(i, 0)
	return true
}

func (w *world) expire(r *rand.Rand) bool {
	s := w.anySlot(r)
	id := s.client().SessionID()
	if id == 0 {
		return false
	}
	if w.cluster.ExpireSession(id) != nil {
		return false // nobody leads
	}
	w.mu.Lock()
	w.rec.Forced[id] = w.now()
	w.mu.Unlock()
	w.tell("fault", "the session of %s ends, %#x", s.name, id)
	return true
}

func (w *world) pauseClient(r *rand.Rand) bool {
	s := w.anySlot(r)
	s.pause()
	w.tell("fault", "%s stands still", s.name)
	time.Sleep(w.timeout + w.tick + w.span(r, 0.3))
	s.resume()
	return true
}

// deleteNode is an operator who deletes a contender's node.
func (w *world) deleteNode(r *rand.Rand) bool {
	all := w.cluster.Ephemerals(0)
	if len(all) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.timeout)
	defer cancel()
	path := all[r.IntN(len(all))]
	err := w.op.Delete(ctx, path, framework.AnyVersion)
	if err != nil {
		w.tell("fault", "an operator cannot delete %s: %s", path, classify(err))
		return false
	}
	w.tell("fault", "an operator deletes %s", path)
	return true
}

// sweep makes the server look for empty containers.
func (w *world) sweep(*rand.Rand) bool {
	before := len(w.cluster.Transactions())
	w.cluster.SweepContainers()
	return slices.ContainsFunc(w.cluster.Transactions()[before:], func(txn zktest.Transaction) bool {
		return txn.Op == "deleteContainer" && !txn.Refused
	})
}

// cancel ends the context of some call.
func (w *world) cancel(r *rand.Rand) bool {
	w.mu.Lock()
	var waiting []*call
	for _, c := range w.calls {
		if !c.cancelled {
			waiting = append(waiting, c)
		}
	}
	if len(waiting) == 0 {
		w.mu.Unlock()
		return false
	}
	c := waiting[r.IntN(len(waiting))]
	c.cancelled = true
	c.wait.Limit = min(c.wait.Limit, w.now())
	w.tellLocked(c.wait.Who, "its context is cancelled")
	w.mu.Unlock()
	c.cancel(errCancelled)
	return true
}

func (w *world) closeClient(r *rand.Rand) bool {
	s := w.anySlot(r)
	before, alone := s.leave()
	if !alone {
		return false
	}
	w.tell(s.name, "closes")
	err := before.Close()
	w.tell(s.name, "closed: %v", err)
	s.start()
	return true
}
