// Package leader elects one leader among the processes that stand for it, on Curator's
// node layouts: Go and Java stand in one election.
//
// An election is a lock underneath, and a term of leadership is a hold of it. A term has a
// context for the work, which ends before another candidate can lead.
//
//	latch := leader.NewLatch(client, "/app/leader")
//	err := latch.Run(ctx, func(ctx context.Context, term *leader.Term) error {
//		return schedule(ctx, term.Number())
//	})
//
// A candidate is a Latch or a Selector. To stand means to have a node in the
// election's queue. The candidate whose node is first leads. Latch and Selector have
// the same methods and differ in their nodes: a Latch stands beside Curator's
// LeaderLatch, and a Selector beside Curator's LeaderSelector.
//
// # What an election promises
//
// At any point of the ensemble's history at most one candidate's node is first. The
// context of a term ends before the servers can let another candidate lead. This is true
// if the rates of clocks differ by 1 % at most, and nobody deletes the node or ends the
// session by force. Use Term.Transaction or Term.Number for writes that must be safe even
// otherwise: the servers, or a gate elsewhere, then refuse the late write of a former
// leader.
package leader
