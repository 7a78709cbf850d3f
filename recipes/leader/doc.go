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
// Latch and Selector have the same methods. They differ in their nodes: a Latch stands
// with Curator's LeaderLatch, a Selector with Curator's LeaderSelector.
//
// # What an election promises
//
// At any point of the ensemble's history at most one candidate's node is first. The
// context of a term ends before the servers can let another candidate lead. This holds as
// long as the rates of clocks differ by 1 % at most, and nobody deletes the node or ends
// the session by force. Term.Transaction and Term.Number are for what must be right
// even then: the servers, or a gate elsewhere, refuse what a former leader writes late.
package leader
