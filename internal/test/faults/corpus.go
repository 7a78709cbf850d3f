package main

// The files that bugs are planted into.
const (
	burst         = "internal/session/burst.go"
	calls         = "internal/session/calls.go"
	tracked       = "internal/session/tracked.go"
	clock         = "internal/session/clock.go"
	conn          = "internal/transport/conn.go"
	events        = "internal/session/events.go"
	foreign       = "internal/foreign/foreign.go"
	group         = "recipes/locks/group.go"
	handshake     = "internal/transport/handshake.go"
	hold          = "recipes/locks/hold.go"
	hosts         = "internal/transport/hosts.go"
	holdContext   = "recipes/locks/context.go"
	jobs          = "internal/session/jobs.go"
	leaseFile     = "internal/session/lease/lease.go"
	loop          = "internal/session/loop.go"
	multilock     = "recipes/locks/multilock.go"
	mutex         = "recipes/locks/mutex.go"
	localQueue    = "recipes/locks/localqueue.go"
	transportFile = "internal/transport/transport.go"
	longwait      = "recipes/locks/longwait.go"
	lookup        = "internal/transport/lookup.go"
	nodeName      = "internal/session/nodename.go"
	removal       = "internal/session/removal.go"
	schedule      = "internal/session/lease/schedule.go"
	sessionFile   = "internal/session/session.go"
	socket        = "internal/transport/rawsocket/rawsocket.go"
	sweeps        = "internal/session/sweep.go"
	ownership     = "recipes/locks/ownership.go"
	acquireQueue  = "recipes/internal/acquire/queue.go"
	attempt       = "recipes/internal/acquire/attempt.go"
	backoff       = "recipes/internal/deadlock/backoff.go"
	decide        = "recipes/internal/deadlock/decide.go"
	history       = "recipes/internal/deadlock/history.go"
	view          = "recipes/internal/deadlock/view.go"
	contender     = "recipes/internal/acquire/contender.go"
	create        = "recipes/internal/acquire/create.go"
	exchange      = "recipes/internal/acquire/exchange.go"
	kind          = "recipes/internal/znode/kind.go"
	multi         = "recipes/internal/acquire/multi.go"
	position      = "recipes/internal/acquire/position.go"
	predecessor   = "recipes/internal/acquire/predecessor.go"
	rule          = "recipes/internal/znode/rule.go"
	semaphore     = "recipes/internal/acquire/semaphore.go"
	single        = "recipes/internal/acquire/single.go"
	snapshot      = "recipes/internal/znode/snapshot.go"
	wait          = "recipes/internal/acquire/wait.go"
	yield         = "recipes/internal/acquire/yield.go"
	transaction   = "recipes/locks/transaction.go"
	usercode      = "internal/transport/usercode.go"
	transcript    = "testing/transcript.go"
	treeData      = "testing/internal/tree/data.go"
	watches       = "internal/session/watches.go"
	watchTable    = "testing/watchtable.go"
	window        = "internal/session/window.go"
)

// The packages whose tests look for them.
const (
	conformance  = "internal/test/conformance"
	framework    = "framework"
	differential = "testing/differential"
	leasePkg     = "internal/session/lease"
	transport    = "internal/transport"
	rawSocket    = "internal/transport/rawsocket"
	listeners    = "listeners"
	locks        = "recipes/locks"
	session      = "internal/session"
	zktest       = "testing"
	deadlockPkg  = "recipes/internal/deadlock"
)

// corpus has the failures that locks on ZooKeeper are known for, in rows 1 to
// 42, and behind them those of fences, of the connection and of secrets.
//
// A text must be short and stand in a place that seldom changes. Who moves one
// moves it here as well: TestEveryMutantFits names those that do not fit.
var corpus = []row{
	{number: 1, failure: "a node was created and the reply lost", faults: []fault{
		{
			"a mutex forgets a creation without a reply",
			[]swap{{create, "\tcase errors.Is(err, session.ErrOutcomeUnknown):\n\t\treturn 0, err\n\tcase err != nil:\n\t\tm.refused()", "\tcase err != nil:\n\t\tm.refused()"}},
			locks, "TestEachRequestFails/cut_after/mutex_taken=false",
		},
		{
			"a MultiLock forgets a creation without a reply",
			[]swap{{create, "results, err := a.results(ctx, c, m.call, len(m.of))\n\tif errors.Is(err, session.ErrOutcomeUnknown) {", "results, err := a.results(ctx, c, m.call, len(m.of))\n\tif false {"}},
			locks, "TestReplyLostBesideAnotherOfTheSession/multi",
		},
	}},
	{number: 2, failure: "the search for it asks a server that lags behind", faults: []fault{
		{
			"the search is not preceded by a write",
			[]swap{{exchange, "case a.any((*contender).unknown):", "case false:"}},
			locks, "TestSearchComesBehindAWrite/mutex",
		},
		{
			"a MultiLock lists its queues without a write before",
			[]swap{{exchange, "case a.any((*contender).unknown):", "case false:"}},
			locks, "TestSearchComesBehindAWrite/multi",
		},
	}},
	{number: 3, failure: "the session expires while waiting", faults: []fault{
		{
			"a mutex goes on in the next session as in its own",
			[]swap{{attempt, "if a.id != c.Session() {", "if a.id == 0 {"}},
			locks, "TestExpiredAtAnyMoment/mutex_taken=true",
		},
		{
			"a MultiLock goes on in the next session as in its own",
			[]swap{{attempt, "if a.id != c.Session() {", "if a.id == 0 {"}},
			locks, "TestExpiredAtAnyMoment/multi_taken=true",
		},
		{
			"FailOnSessionLoss is not heeded",
			[]swap{{attempt, "if a.id != 0 && a.failOnLoss() {", "if false {"}},
			conformance, "TestInProcess/lock/waiter-expired",
		},
	}},
	{number: 4, failure: "a new session takes an old one's node for its own", faults: []fault{
		{
			"a session given up is not closed before the next one",
			[]swap{{handshake, "if err := c.closeSession(); err != nil {", "if err := error(nil); err != nil {"}},
			transport, "TestAbandonedSessionIsClosedWhereItIsFoundAgain",
		},
		{
			"whose node was found is not asked",
			[]swap{{attempt, "case errors.Is(err, zk.ErrNoNode), err == nil && stat.EphemeralOwner != a.id:", "case errors.Is(err, zk.ErrNoNode):"}},
			locks, "TestNodeOfAnotherUnderOurName",
		},
	}},
	{number: 5, failure: "a waiter is told yes and its node is gone", faults: []fault{
		{
			"a check that finds the node gone counts",
			[]swap{{tracked, "case r.Code == wire.CodeNoNode:\n\t\t\tchanges = append(changes, s.loseLocked(node, ErrNodeDeleted)...)", "case r.Code == wire.CodeNoNode:"}},
			locks, "TestNodeGoesWhileItIsConfirmed",
		},
	}},
	{number: 6, failure: "the one ahead is a waiter and dies", faults: []fault{
		{
			"to be woken is to be granted",
			[]swap{{single, "return false, a.waitFor(ctx, c, k, &s.position)", "err := a.waitFor(ctx, c, k, &s.position)\n\treturn err == nil, err"}},
			locks, "TestNodeAheadIsNotTheHolder/mutex",
		},
	}},
	{number: 7, failure: "the one ahead goes before it is watched", faults: []fault{
		{
			"a mutex fails when there is nothing to watch",
			[]swap{{predecessor, "return false, nil // somebody has gone", "return false, err // somebody has gone"}},
			locks, "TestNodeAheadGoesBeforeItIsWatched/mutex",
		},
		{
			"a MultiLock waits where there is nothing to watch",
			[]swap{{yield, "again, err = true, nil", "err = nil"}},
			locks, "TestNodeAheadGoesBeforeItIsWatched/multi",
		},
	}},
	{number: 8, failure: "a waiter's node is deleted by somebody", faults: []fault{
		{
			"a mutex that is not in the list is not behind anybody",
			[]swap{{position, "if p.At = snap.Find(k.name()); p.At < 0 {", "if p.At = snap.Find(k.name()); p.At < 0 && !k.yields {\n\t\tp.At = 0\n\t}\n\tif p.At < 0 {"}},
			locks, "TestWaiterWhoseNodeIsDeleted/mutex",
		},
		{
			"a MultiLock that is not in the list is first",
			[]swap{{position, "if p.At = snap.Find(k.name()); p.At < 0 {", "if p.At = snap.Find(k.name()); p.At < 0 && k.yields {\n\t\tp.At = 0\n\t}\n\tif p.At < 0 {"}},
			locks, "TestWaiterWhoseNodeIsDeleted/multi",
		},
	}},
	{number: 9, failure: "the parent is deleted", faults: []fault{
		{
			"a parent that was made is not used",
			[]swap{{create, "\t\terr = a.ensure(ctx, c, parentless)\n", "\t\t_ = a.ensure(ctx, c, parentless)\n\t\terr = zk.ErrNoNode\n"}},
			locks, "TestParentGoesAgainAndAgain/mutex",
		},
		{
			"a MultiLock gives up without its parents",
			[]swap{{create, "parentless = append(parentless, m.of[at:]...)\n", "if parentless = append(parentless, m.of[at:]...); m.joint {\n\t\t\t\terr = e\n\t\t\t}\n"}},
			locks, "TestParentGoesAgainAndAgain/multi",
		},
	}},
	{number: 10, failure: "a container is reaped", faults: []fault{
		{
			"parents are nodes that nobody reaps",
			[]swap{{"framework/ensure.go", "if asContainers {\n\t\t\tcode", "if false {\n\t\t\tcode"}},
			locks, "TestParentsGoWithTheLock",
		},
		{
			"a parent that went between look and use is not made again",
			[]swap{{"framework/ensure.go", "if err = o.makeAll(ctx, c, missing, parents); !errors.Is(err, ErrNoNode) {", "if err = o.makeAll(ctx, c, missing, parents); true {"}},
			locks, "TestParentIsReapedAsItIsUsed/semaphore",
		},
	}},
	{number: 11, failure: "sequence numbers overflow", faults: []fault{
		{
			"numbers near their end are taken",
			[]swap{{kind, "if seq >= seqLimit {", "if seq < 0 {"}},
			locks, "TestNumbersAtTheirEnd/near",
		},
		{
			"two nodes of one number have an order",
			[]swap{{snapshot, "if snap.kinds[s.kind()] != Read {", "if snap.kinds[s.kind()] != Read && false {"}},
			locks, "TestNumbersAtTheirEnd/tied",
		},
		{
			"negative numbers are passed over",
			[]swap{{kind, "err == nil && n < 0 {", "err == nil && n == 0 {"}},
			locks, "TestNumbersAtTheirEnd/negative",
		},
	}},
	{number: 12, failure: "the queue is longer than a reply may be", faults: []fault{
		{
			"a reply that is too long ends the connection",
			[]swap{{conn, "if n > c.transport.cfg.MaxReply && n <= mostPassedOver {", "if n < 0 && n <= mostPassedOver {"}},
			transport, "TestReplyThatIsTooLong",
		},
		{
			"it counts as a connection that was lost",
			[]swap{{calls, "if call.Replied() {", "if call.Err() == nil {"}},
			locks, "TestQueueThatIsTooLong",
		},
		{
			"the memory of a long list is used for the next one while it is read",
			[]swap{{conn, "call.memory, call.err = h, body, in, failure", "call.memory, call.err = h, body, nil, failure\n\tif in != nil {\n\t\treplies.Put(in)\n\t}"}},
			transport, "TestLongRepliesKeepTheirMemory",
		},
	}},
	{number: 13, failure: "the directory has children that are none of ours", faults: []fault{
		{
			"a name need only end in ten digits",
			[]swap{{kind, "ok && len(number) == digits {", "ok {"}},
			locks, "TestForeignChildren",
		},
	}},
	{number: 14, failure: "an acquisition fails and leaves its node", faults: []fault{
		{
			"a mutex that fails does not leave",
			[]swap{{localQueue, "if a != nil {\n\t\t\ta.Leave()", "if false {\n\t\t\ta.Leave()"}},
			locks, "TestEachRequestFails/code_-102/mutex_taken=true",
		},
		{
			"a semaphore that fails keeps its leases",
			[]swap{{attempt, "\tif !a.resumable {\n\t\ta.Leave()\n\t}\n\ta.policy", "\tif !a.resumable && *err == nil {\n\t\ta.Leave()\n\t}\n\ta.policy"}},
			locks, "TestEachRequestFails/code_-102/semaphore_taken=true",
		},
		{
			"a MultiLock that fails does not leave",
			[]swap{{attempt, "\tif !a.resumable {\n\t\ta.Leave()\n\t}\n\ta.policy", "\tif !a.resumable && *err == nil {\n\t\ta.Leave()\n\t}\n\ta.policy"}},
			locks, "TestEachRequestFails/code_-102/multi_taken=true",
		},
	}},
	{number: 15, failure: "the caller gives up, at any point", faults: []fault{
		{
			"a creation on its way is left to itself",
			[]swap{{contender, "\t\tcase creating:\n\t\t\ts.RemoveDoubtful(id, k.request, k.queue.Path, k.prefix)\n", "\t\tcase creating:\n"}},
			locks, "TestCancelledAtAnyMoment/mutex_taken=false",
		},
		{
			"a write whose caller has gone counts as not sent",
			[]swap{{calls, "if c.Cancel(call) || !write {", "if c.Cancel(call) || true {"}},
			locks, "TestCancelledAtAnyMoment/multi_taken=false",
		},
	}},
	{number: 16, failure: "the wait ends as the lock is granted", faults: []fault{
		{
			"what was granted too late is an error and a hold",
			[]swap{{mutex, "hold, err := m.queue.hold(ctx, o)\n", "hold, err := m.queue.hold(ctx, o)\n\tif err == nil && ctx.Err() != nil {\n\t\treturn hold, opError(\"acquire\", m.path, ctx.Err())\n\t}\n"}},
			locks, "TestCancelledAtEachLookAtTheContext/mutex",
		},
	}},
	{number: 17, failure: "a waiter that gives up leaves its watch", faults: []fault{
		{
			"nothing is removed from the server",
			[]swap{{watches, "if w.conn.Send(call) == nil {", "if call == nil {"}},
			locks, "TestGivingUpLeavesNoWatch/mutex",
		},
		{
			"a MultiLock stops no watch",
			[]swap{{attempt, "\ta.policy.unwatch(a)\n\tfor i := range a.contenders {", "\tif a.resumable {\n\t\ta.policy.unwatch(a)\n\t}\n\tfor i := range a.contenders {"}},
			locks, "TestGivingUpLeavesNoWatch/multi",
		},
	}},
	{number: 18, failure: "an event comes between watching and waiting", faults: []fault{
		{
			"a watch counts only a moment after its reply",
			[]swap{{watches, "\t\tw.answered(sub, call)\n", "\t\tgo w.answered(sub, call)\n"}},
			locks, "TestEventRightBehindTheReply",
		},
	}},
	{number: 19, failure: "the clock jumps, or the machine sleeps", faults: []fault{
		{
			"time asleep does not count",
			[]swap{{clock, "return awake + time.Duration(c.asleep.Load())", "return awake"}},
			session, "TestClockGoesOnWhileTheMachineSleeps",
		},
		{
			"the clock is read only when a timer is due",
			[]swap{{loop, "next = earlier(next, now.Add(lookAgain))", "_ = lookAgain"}},
			locks, "TestLeaseEndsWhileTheMachineSleeps",
		},
		{
			"who enters again does not look at the clock",
			[]swap{{mutex, "_, _ = same.ownership.now()", "_ = same"}},
			locks, "TestNobodyEntersAgainAfterSleep",
		},
		{
			"a deadline is remembered beyond its connection",
			[]swap{{tracked, "func (s *Session) doubtTrackedLocked() []change {\n\ts.sure.Store(0)\n", "func (s *Session) doubtTrackedLocked() []change {\n"}},
			session, "TestClaimStateIsAsTheClockSays",
		},
		{
			"a deadline is remembered beyond its session",
			[]swap{{tracked, "func (s *Session) loseTrackedLocked(reason error) []change {\n\ts.sure.Store(0)\n", "func (s *Session) loseTrackedLocked(reason error) []change {\n"}},
			session, "TestClaimStateIsAsTheClockSays",
		},
		{
			"a claim in doubt counts as held",
			[]swap{{"internal/session/trackedset.go", "node.held.Store(state == NodeHeld)", "node.held.Store(true)"}},
			session, "TestClaimStateIsAsTheClockSays",
		},
		{
			"a lost claim counts as held",
			[]swap{{"internal/session/trackedset.go", "node.held.Store(false)\n", ""}},
			session, "TestClaimStateIsAsTheClockSays",
		},
	}},
	{number: 20, failure: "the client is closed while waiting", faults: []fault{
		{
			"who waits for an event is not told",
			[]swap{{sessionFile, "s.watches.end(ErrClosed, true)", "_ = s.watches"}},
			locks, "TestClosedAtAnyMoment/mutex_taken=true",
		},
		{
			"who waits for a connection is not told",
			[]swap{{calls, "case closed:\n\t\t\treturn nil, ErrClosed\n\t\tcase c != nil", "case closed && false:\n\t\tcase c != nil"}},
			framework, "TestWaitForAConnectionEndsWithTheClient",
		},
	}},
	{number: 21, failure: "the session expires while holding", faults: []fault{
		{
			"a lost hold can be entered again",
			[]swap{{"recipes/locks/ownership.go", "if o.state == Lost || o.state == Released {\n\t\treturn o.err\n\t}\n\tif o.leaving", "if o.state == Released {\n\t\treturn o.err\n\t}\n\tif o.leaving"}},
			locks, "TestLostHoldIsNotEnteredAgain/mutex",
		},
	}},
	{number: 22, failure: "the connection is lost and comes back in time", faults: []fault{
		{
			"nothing is uncertain without a connection",
			[]swap{{events, "changes = s.doubtTrackedLocked()", "changes = nil"}},
			locks, "TestHoldIsVerifiedAfterAReconnect",
		},
		{
			"a node that is gone after it counts as there",
			[]swap{{tracked, "changes = append(changes, s.loseLocked(node, ErrNodeDeleted)...)", "changes = append(changes, s.confirmLocked(node)...)"}},
			locks, "TestHoldIsVerifiedAfterAReconnect",
		},
		{
			"a new connection is proof enough",
			[]swap{{events, "s.setStateLocked(s.upStateLocked(c))", "s.setStateLocked(s.upStateLocked(c))\n\tfor _, cl := range s.tracked.all() {\n\t\ts.tracked.grade(cl, ClaimHeld, cl.blind)\n\t}"}},
			locks, "TestHoldIsVerifiedAfterAReconnect",
		},
	}},
	{number: 23, failure: "the process pauses beyond its session", faults: []fault{
		{
			"the deadline counts from the reply",
			[]swap{{leaseFile, "raise(&l.heard, r.Sent.Add(l.terms.Span()))", "raise(&l.heard, r.Received.Add(l.terms.Span()))"}},
			leasePkg, "TestProvedByTheServer",
		},
		{
			"pings alone prove the session to the leader",
			[]swap{{leaseFile, "if l.terms.Rule == ByServer {\n\t\treturn l.heard", "if l.terms.Rule >= ByQuorum {\n\t\treturn l.heard"}},
			locks, "TestPingsAloneProveNothing",
		},
		{
			"who asks is told what the timer knows",
			[]swap{{tracked, "int64(s.clock.Since(s.opened)) < s.sure.Load() && node.held.Load()", "node.held.Load()"}},
			locks, "TestLeaseEndsWhileTheMachineSleeps",
		},
	}},
	{number: 24, failure: "a holder's node is deleted by somebody", faults: []fault{
		{
			"its watch is not heeded",
			[]swap{{tracked, "case ev.Type == wire.EventNodeDeleted:\n\t\t\ts.Vanished(node)", "case ev.Type == wire.EventNodeDeleted:"}},
			locks, "TestMemberIsLost",
		},
		{
			"its watch is not set again after somebody wrote to it",
			[]swap{{tracked, "s.unwatched(node) // somebody wrote to it", ""}},
			locks, "TestNodeThatIsDeletedLater",
		},
	}},
	{number: 25, failure: "the server is read-only", faults: []fault{
		{
			"any connection is good for writing",
			[]swap{{calls, "case c != nil && (!write || !c.ReadOnly()):", "case c != nil:"}},
			locks, "TestReadOnlyServer",
		},
		{
			"a lock is asked for where none can be had",
			[]swap{{calls, "return s.conn != nil && !s.conn.ReadOnly()", "return s.conn != nil"}},
			locks, "TestReadOnlyServer",
		},
	}},
	{number: 26, failure: "the session has moved to another server", faults: []fault{
		{
			"a session that has moved is the end of the call",
			[]swap{{jobs, ", errors.Is(err, zk.ErrSessionMoved)", ", false && errors.Is(err, zk.ErrSessionMoved)"}},
			locks, "TestRefusalsThatPass/session_moved/mutex",
		},
	}},
	{number: 27, failure: "two acquisitions in one session", faults: []fault{
		{
			"all nodes have one name",
			[]swap{{nodeName, "copy(u[10:], t[:])\n\treturn protection(u)", "clear(u[:])\n\treturn protection(u)"}},
			locks, "TestReplyLostBesideAnotherOfTheSession",
		},
	}},
	{number: 28, failure: "a listener blocks or panics", faults: []fault{
		{
			"a panic of a listener is not caught",
			[]swap{{"listeners/listener.go", "if r := recover(); r != nil {", "if r := any(nil); r != nil {"}},
			listeners, "TestBadListenersHarmNobodyElse",
		},
		{
			"the oldest of more than six events is dropped",
			[]swap{{"listeners/listener.go", "l.queue = append(l.queue, e)\n", "if l.queue = append(l.queue, e); len(l.queue) > 6 {\n\t\tl.queue = l.queue[1:]\n\t}\n"}},
			listeners, "TestBlockedListenerLosesNothing",
		},
	}},
	{number: 29, failure: "a release without a connection", faults: []fault{
		{
			"it is not gone on with",
			[]swap{{removal, "s.refused(left, err)\n\t}\n", "s.refused(left, err)\n\t} else {\n\t\tr.tell(err)\n\t\treturn\n\t}\n"}},
			locks, "TestDisconnectedAtAnyMoment/mutex_taken=false",
		},
		{
			"it waits for as long as it takes",
			[]swap{{removal, "r.session.expect(r, limit)", "_ = limit"}},
			locks, "TestReleaseWaitsAsLongAsItShall",
		},
	}},
	{number: 30, failure: "a release is refused", faults: []fault{
		{
			"it is not tried again",
			[]swap{{removal, "s.refused(left, err)\n\t}\n", "s.refused(left, err)\n\t\tr.end(ErrClosed)\n\t\treturn\n\t}\n"}},
			locks, "TestRefusedReleaseIsTriedAgain",
		},
		{
			"the caller is not told",
			[]swap{{removal, "r.reported = true\n\t\tr.tell(err)\n", "r.reported = true\n"}},
			locks, "TestRefusedReleaseIsTriedAgain",
		},
	}},
	{number: 31, failure: "a hold is released twice, or does not end for who looks at it", faults: []fault{
		{
			"the second release does what the first does",
			[]swap{{hold, "if !h.released.CompareAndSwap(false, true) {\n\t\treturn ErrReleased\n\t}\n", "h.released.Store(true)\n"}},
			locks, "TestReleasedByManyAtOnce",
		},
		{
			"the last hold is the one that was the last when it began to go",
			[]swap{{"recipes/locks/pendingrelease.go", "if len(o.holds) == 0 && o.state != Lost {", "if d.last && o.state != Lost {"}},
			locks, "TestOtherHoldGoesDuringCommitAndRelease",
		},
		{
			"a context that was made does not end",
			[]swap{{holdContext, "if own := h.contexts.own; own != nil &&", "if own := h.contexts.own; own == nil &&"}},
			locks, "TestContextIsAsThatOfPackageContext",
		},
		{
			"a bound context does not end",
			[]swap{{holdContext, "made.bound[c] = struct{}{}", "_ = made"}},
			locks, "TestContextBoundBeforeAnyOther",
		},
	}},
	{number: 32, failure: "who owns the lock is not who asks", faults: []fault{
		{
			"a process owns what any of its goroutines holds",
			[]swap{
				{"recipes/locks/holdchain.go", "func holdChainOf(ctx context.Context) *holdChain {\n", "var latest *holdChain\n\nfunc holdChainOf(ctx context.Context) *holdChain {\n\tif latest != nil {\n\t\treturn latest\n\t}\n"},
				{hold, "h.chain = holdChain{hold: h, outer: holdChainOf(ctx)}\n", "h.chain = holdChain{hold: h, outer: holdChainOf(ctx)}\n\tlatest = &h.chain\n"},
			},
			conformance, "TestInProcess/lock/two-goroutines",
		},
	}},
	{number: 33, failure: "one of several locks cannot be had", faults: []fault{
		{
			"the others are kept",
			[]swap{{multilock, "err = errors.Join(err, refusals(releaseAll(have)))", "err = errors.Join(err)"}},
			conformance, "TestInProcess/multi/rollback",
		},
		{
			"each has the whole wait to itself",
			[]swap{{multilock, "max(0, time.Until(until))", "l.wait"}},
			locks, "TestMultiLockWaitsOnceForAll",
		},
		{
			"a MultiLock never yields",
			[]swap{{yield, "a.looking = true", "a.looking = false"}},
			locks, "TestNesting/nesters/2ms_clients=own",
		},
		{
			"a look passes over locks that are not queued for yet",
			[]swap{{multi, "m.phase != absent || a.looking ||", "m.phase != absent ||"}},
			locks, "TestOrderedMultiLockYieldsToOwnersOfLaterLocks",
		},
		{
			"MultiLocks of one client yield to each other for whatever is held there",
			[]swap{{view, "differ && (n.Yields || other.Yields)", "differ && n.Yields && other.Yields"}},
			locks, "TestMultiLocksOfOneClientKeepTheirPlaces",
		},
		{
			"a MultiLock that has waited for long yields as soon as one that has not",
			[]swap{{backoff, ", min(waited/stallShare, mostStall))", ")"}},
			locks, "TestPatienceGrowsWithTheWait/old",
		},
		{
			"a look comes long after patience has ended",
			[]swap{{decide, "next = min(next, left+below(stall/stallJitter))", "_ = left"}},
			deadlockPkg, "TestLookWhenPatienceEnds",
		},
		{
			"what was waited through a fault makes it patient",
			[]swap{{history, "func (h *History) Connected(now time.Time) { h.stall.waiting = now }", "func (h *History) Connected(time.Time) {}"}},
			locks, "TestPatienceGrowsWithTheWait/after_a_fault",
		},
		{
			"patience does not learn that it pays",
			[]swap{{backoff, "b.most, b.paid = min(2*b.most, endless), true", "_ = endless"}},
			deadlockPkg, "TestBackoff",
		},
		{
			"a line hands over what a MultiLock waits for",
			[]swap{{localQueue, "opts.Revocable || o.node.SawMulti() ||", "opts.Revocable ||"}},
			locks, "TestMultiLocksComeBetween",
		},
		{
			"an owner of other locks waits where nobody sees it",
			[]swap{{localQueue, "localQueueKey{q.Path, inherited(ctx)}", "localQueueKey{path: q.Path}"}},
			locks, "TestOneLineForEachOwner",
		},
	}},
	{number: 34, failure: "one of several locks is lost", faults: []fault{
		{
			"the others go on",
			[]swap{{group, "m.ownership.group(o)\n", ""}},
			locks, "TestMemberIsLost",
		},
	}},
	{number: 35, failure: "a reader wants to write", faults: []fault{
		{
			"it waits for itself",
			[]swap{{mutex, "if from.find(m.key, nil) != nil {", "if false {"}},
			locks, "TestUpgradeIsRefusedAtOnce",
		},
	}},
	{number: 36, failure: "somebody overtakes", faults: []fault{
		{
			"readers see only a writer at the head",
			[]swap{{rule, "if snap.Kind(i) == Write && !own {", "if snap.Kind(i) == Write && !own && i == 0 {"}},
			conformance, "TestInProcess/read-write/fair",
		},
		{
			"a queue is in the order of the list",
			[]swap{{snapshot, "packedEntry(seq)<<numberAt|", "packedEntry(seq-seq+int32(len(snap.entries)))<<numberAt|"}},
			locks, "TestWakeUps",
		},
		{
			"everybody waits for the head of the queue",
			[]swap{{rule, "return at - 1, at > 0", "return 0, at > 0"}},
			locks, "TestWakeUps",
		},
	}},
	{number: 37, failure: "a semaphore lends more than it has", faults: []fault{
		{
			"one lease more",
			[]swap{{rule, "return 0, at >= n", "return 0, at > n"}},
			conformance, "TestInProcess/semaphore/leases",
		},
		{
			"lock objects may state different numbers of leases",
			[]swap{{"recipes/locks/shared.go", "if t.total != total {", "if t.total < 0 {"}},
			locks, "TestDifferentNumbersOfLeases",
		},
	}, reason: "that two processes state different numbers cannot be seen: Curator's layout has no place for the number, and a node of ours there would be a lease to it"},
	{number: 38, failure: "who is being served by a semaphore dies", faults: []fault{
		{
			"its turn stays",
			[]swap{{attempt, "if !a.resumable {\n\t\ta.Leave()", "if !a.resumable && (*err != nil || len(a.policy.won(a)) == len(a.contenders)) {\n\t\ta.Leave()"}},
			locks, "TestCancelledAtAnyMoment/semaphore_taken=true",
		},
		{
			"nodes outlive their session",
			[]swap{{contender, "Flags: wire.FlagEphemeralSequence", "Flags: wire.FlagSequence"}},
			locks, "TestExpiredAtAnyMoment/semaphore_taken=true",
		},
	}},
	{number: 39, failure: "two kinds of lock at one path", faults: []fault{
		{
			"contenders for another kind are passed over",
			[]swap{{snapshot, "if o := snap.other; o.name != \"\" && (", "if o := snap.other; o.name == \"-\" && ("}},
			locks, "TestTwoKindsOfLockOnOnePath/mutex,_then_write",
		},
		{
			"a semaphore does not look for another kind of lock on its path",
			[]swap{{create, "if znode.IsContender(name) {", "if znode.IsContender(name) && path == \"\" {"}},
			locks, "TestTwoKindsOfLockOnOnePath/mutex,_then_semaphore",
		},
		{
			"a mutex takes the leases of a semaphore for anything",
			[]swap{{snapshot, "} else if ownPath && ", "} else if ownPath && !ownPath && "}},
			locks, "TestTwoKindsOfLockOnOnePath/semaphore,_then_mutex",
		},
		{
			"a late contender of another kind stops the right ones",
			[]swap{{snapshot, "o.seq < snap.Seq(0))", "o.seq != snap.Seq(0))"}},
			locks, "TestTheWrongKindHarmsNobody/mutex_and_write",
		},
	}, reason: "that a mutex came to a path where a semaphore has had both its folders is seen by the mutex alone: the semaphore lists its folders and not the path"},
	{number: 40, failure: "a path leads elsewhere", faults: []fault{
		{
			"relative elements are let through",
			[]swap{{"framework/path.go", "case \".\", \"..\":", "case \".\":"}},
			conformance, "TestInProcess/call/bad-paths",
		},
	}},
	{number: 41, failure: "chroot and namespace", faults: []fault{
		{
			"what was made is told with the namespace",
			[]swap{{"framework/create.go", "return o.relative(made), nil", "return made, nil"}},
			conformance, "TestInProcess/create/namespace",
		},
		{
			"events tell the path on the server",
			[]swap{{"framework/watch.go", "Path: o.relative(ev.Path)", "Path: ev.Path"}},
			conformance, "TestInProcess/watch/children",
		},
		{
			"a chroot that is missing is made",
			[]swap{{"framework/ensure.go", "return nil, fmt.Errorf(\"chroot %s: %w\", p, ErrNoNode)", "return missing, nil"}},
			conformance, "TestInProcess/client/missing-chroot",
		},
	}},
	{number: 42, failure: "credentials after a reconnect", faults: []fault{
		{
			"they are presented once",
			[]swap{{handshake, "err = c.authenticate()\n", "if c.shake.session == 0 {\n\t\terr = c.authenticate()\n\t}\n"}},
			transport, "TestCredentials",
		},
		{
			"their refusal is not heeded",
			[]swap{{handshake, "if h.Code != wire.CodeOK {", "if false {"}},
			transport, "TestCredentials",
		},
	}},
	{number: 43, failure: "writes of a former owner", faults: []fault{
		{
			"a transaction goes without its proof",
			[]swap{{"recipes/locks/transaction.go", "Guarded(session.Key{}, guards)", "Guarded(session.Key{}, guards[:0])"}},
			locks, "TestStaleWrites",
		},
		{
			"tokens do not rise",
			[]swap{{mutex, "o.token = node.Token()", "o.token = -node.Token()"}},
			locks, "TestStaleWrites",
		},
		{
			"a gate admits everybody",
			[]swap{{"recipes/locks/gate.go", "case token < g.highest:", "case token < 0:"}},
			locks, "TestGate",
		},
	}},
	{number: 44, failure: "a server that does not speak the protocol", faults: []fault{
		{
			"a reply may be of any length",
			[]swap{{conn, "if n < least || n > most {", "if n < least {"}},
			transport, "TestHostileHandshakes",
		},
		{
			"a session may be of any length",
			[]swap{{handshake, "timeout > max(asked, mostGranted)", "timeout < 0"}},
			transport, "TestHostileHandshakes",
		},
		{
			"a node may have any name",
			[]swap{{contender, "path[:max(at, 0)] != k.queue.Path || !ok || !strings.HasPrefix(number, string(k.queue.Kind))", "len(path) <= len(k.prefix) && ok && number == \"\""}},
			locks, "TestNodesOfOtherNames",
		},
		{
			"memory is taken as announced",
			[]swap{{conn, "make([]byte, 0, min(max(n, 2*have), readStep))", "make([]byte, 0, max(n, readStep))"}},
			transport, "TestAnnouncedLengthDoesNotAllocate",
		},
		{
			"any session will do",
			[]swap{{handshake, "case c.shake.session != 0 && c.shake.session != r.SessionID:", "case c.shake.session < 0:"}},
			transport, "TestChangedSessionIsRefused",
		},
	}},
	{number: 45, failure: "secrets are told", faults: []fault{
		{
			"a credential prints what it has",
			[]swap{{"framework/config.go", "return a.Scheme + \":***\"", "return a.Scheme + string(a.Data)"}},
			conformance, "TestInProcess/client/secrets",
		},
	}},
	{number: 46, failure: "system calls that the scheduler is not told of", faults: []fault{
		{
			"one may block",
			[]swap{{socket, "fd, t.p, syscall.MSG_DONTWAIT)", "fd, t.p, 0)"}},
			rawSocket, "TestSocketThatBlocks",
		},
		{
			"its timer may be due before it is there",
			[]swap{{socket, "time.AfterFunc(math.MaxInt64,", "time.AfterFunc(min(math.MaxInt64, 1),"}},
			rawSocket, "TestMonitorTickIsNotDueBeforeTheFirstCall",
		},
		{
			"what did not fit is not sent",
			[]swap{{socket, "t.n, t.p = t.n+n, t.p[n:]", "t.n, t.p = len(t.p), nil\n\t\t_ = n"}},
			rawSocket, "TestSocketIsAsPackageNet/write_more_than_fits",
		},
		{
			"the end is not seen",
			[]swap{{socket, "t.err = io.EOF", "_ = io.EOF"}},
			rawSocket, "TestSocketIsAsPackageNet/read_what_came,_then_the_end",
		},
	}},
	{number: 71, failure: "a name has several addresses", faults: []fault{
		{
			"only the first is tried",
			[]swap{{lookup, "for _, t := range lk.targets {", "for _, t := range lk.targets[:1] {"}},
			framework, "TestNameWithASilentAddress",
		},
		{
			"a name that is slow to look up holds up all others",
			[]swap{{hosts, "mostGathering = 100 * time.Millisecond", "mostGathering = time.Hour"}},
			transport, "TestSlowLookups",
		},
		{
			"a resolver that never answers is asked again and again",
			[]swap{{lookup, "if lk == nil {", "if lk == nil || lk.late {"}},
			transport, "TestLookupThatNeverEnds",
		},
		{
			"an address that kept us waiting is as good as any",
			[]swap{{hosts, "\t\tfirst(!x.silent, !y.silent),\n", ""}},
			transport, "TestSilentAddressComesLast",
		},
		{
			"a server with a majority is looked for under other names only",
			[]swap{{"internal/transport/readonly.go", "if t.addr == c.target.addr && isAddress(t.addr) {", "if t.server == c.target.server {"}},
			transport, "TestWriterBehindTheSameName",
		},
		{
			"TLS verifies the address",
			[]swap{{transportFile, "tlsFor(l.cfg.TLS, t.server)", "tlsFor(l.cfg.TLS, t.addr)"}},
			framework, "TestTLSVerifiesTheNameAtEachAddress",
		},
		{
			"with TLS, one of two names of an address is left out",
			[]swap{{hosts, "(!h.byName || other.server == t.server)", "(!h.byName || other.server != \"\")"}},
			framework, "TestTLSOneAddressUnderTwoNames",
		},
		{
			"dialing and handshake have a limit each",
			[]swap{{conn, "c.shake.deadline = deadline", "c.shake.deadline = deadline.Add(l.cfg.ConnectTimeout)"}},
			transport, "TestSlowDialAndHandshake",
		},
	}},
	{number: 72, failure: "functions of users panic or do not end while a client connects", faults: []fault{
		{
			"a panic is not recovered from",
			[]swap{{usercode, "Func: name, Value: recover(), Stack", "Func: name, Stack"}},
			transport, "TestFunctionsThatDoNotReturn",
		},
		{
			"a panic in a method of a connection is not recovered from",
			[]swap{{usercode, "if v := recover(); v != nil {\n\t\t*err =", "if v := any(nil); v != nil {\n\t\t*err ="}},
			transport, "TestConnectionsThatDoNotReturn",
		},
		{
			"a handshake may end go-zookeeper's goroutine",
			[]swap{{conn, "err := c.transport.apart(func() (err error) {", "err := func(fn func() error) error { return fn() }(func() (err error) {"}},
			transport, "TestConnectionsThatDoNotReturn",
		},
		{
			"a connection that does not close is waited for",
			[]swap{
				{usercode, "const mostClosing = 100 * time.Millisecond", "const mostClosing = time.Hour"},
				{conn, "c.transport.wg.Go(c.shut)", "c.shut()"},
			},
			transport, "TestConnectionThatDoesNotClose",
		},
		{
			"a dialer that does not end with its context is waited for",
			[]swap{{lookup, "const slowEnd = 100 * time.Millisecond", "const slowEnd = time.Hour"}},
			transport, "TestDialerThatGoesOn",
		},
		{
			"a dialer that does not end is asked again and again",
			[]swap{{hosts, "if _, ok := h.dialing[t]; ok {", "if _, ok := h.dialing[t]; ok && false {"}},
			transport, "TestDialerThatGoesOn",
		},
	}},
	{number: 73, failure: "no server answers, and then one does again", faults: []fault{
		{
			"it is tried too seldom",
			[]swap{{hosts, "mostPause  = 500 * time.Millisecond", "mostPause  = 2 * time.Second"}},
			framework, "TestTimeToReconnect",
		},
		{
			"the pauses do not grow",
			[]swap{{hosts, "firstPause<<min(h.cycle-1, 10)", "firstPause"}},
			transport, "TestDialsPerSecond",
		},
		{
			"a session that has expired costs a pause",
			[]swap{{transportFile, "if c.shake.session != 0 {", "if false {"}},
			transport, "TestNewSessionWhereTheOldOneHasExpired",
		},
		{
			"each session that has expired is replaced without a pause",
			[]swap{{hosts, "now.Sub(h.againAt) >= lasting", "now.Sub(h.againAt) >= 0"}},
			transport, "TestDialsPerSecond",
		},
		{
			"requests on the raw connection wait for ever",
			[]swap{{hosts, "if !used || h.done", "if used || !used || h.done"}},
			transport, "TestRequestsOnTheRawConnectionFailWithoutAServer",
		},
		{
			"a session that was lost is told as renewed",
			[]swap{{events, "if !fresh && (s.id != c.Session() ||", "if false && (s.id != c.Session() ||"}},
			session, "TestSessionIsLostWhileItIsRenewed",
		},
		{
			"each attempt is a warning",
			[]swap{{"internal/session/outage.go", "case now.Sub(o.toldAt) >= o.pause:", "case now.Sub(o.toldAt) >= 0:"}},
			framework, "TestLogOfAnOutage",
		},
		{
			"a server that is no ZooKeeper is not quoted",
			[]swap{{handshake, "text != \"\" {", "text != \"\" && false {"}},
			framework, "TestServersThatAreNoZooKeeper",
		},
	}},
	{number: 47, failure: "the test server puts into words what clients send", faults: []fault{
		{
			"a list of names is taken apart",
			[]swap{
				{transcript, "fmt.Fprintf(&b, \" %s=%s\", name.Name, text(v))", "fmt.Fprintf(&b, \" %s={%s}\", name.Name, fields(f))"},
				{transcript, "case f.IsZero(), !name.IsExported():", "case f.IsZero():"},
			},
			zktest, "TestTranscriptOfMultiRead",
		},
	}},
	{number: 48, failure: "the test server answers otherwise than ZooKeeper", faults: []fault{
		{
			"existence may be asked for without a right in 3.9",
			[]swap{{treeData, "t.Release >= Release393 &&", "t.Release > Release396 &&"}},
			differential, "TestZktestSpeaksLikeTheRecording/3.9.3/acl-exists",
		},
		{
			"events of 3.9 have no zxid",
			[]swap{{"testing/member.go", "return txn.Zxid\n", "_ = txn\n"}},
			differential, "TestZktestSpeaksLikeTheRecording/3.9.6/watch-once",
		},
		{
			"watches of 3.9 take each other's place",
			[]swap{{watchTable, "release < tree.Release393", "release <= tree.Release396"}},
			differential, "TestZktestSpeaksLikeTheRecording/3.9.6/watch-mixed",
		},
		{
			"a list of watches may be null",
			[]swap{{"testing/watches.go", "if req.Exist == nil {", "if false {"}},
			differential, "TestZktestSpeaksLikeTheRecording/3.8.0/frames-counts",
		},
		{
			"counts below -1 are refused",
			[]swap{{"testing/requests.go", "d.AnyCount = true", "_ = d.AnyCount"}},
			differential, "TestZktestSpeaksLikeTheRecording/3.8.0/frames-counts",
		},
		{
			"text goes back as it came",
			[]swap{{"testing/javatext.go", "return unitByUnit(s)", "return s"}},
			differential, "TestZktestSpeaksLikeTheRecording/3.8.0/watch-set-text",
		},
	}},
	{number: 74, failure: "a node may not be read", faults: []fault{
		{
			"what is hidden above a node is taken for a refusal",
			[]swap{{"framework/ensure.go", "case err == nil, errors.Is(err, ErrNoAuth):", "case err == nil:"}},
			locks, "TestParentsThatNobodyMayRead",
		},
		{
			"a hidden node of ours is never verified",
			[]swap{{tracked, "case wire.CodeOK, wire.CodeNoAuth:", "case wire.CodeOK:"}},
			locks, "TestNodesThatNobodyMayRead/3.9,_MultiLock_false",
		},
		{
			"a hidden node of ours is described by its access list",
			[]swap{{nodeName, "if !errors.Is(err, zk.ErrNoAuth) {", "if true {"}},
			locks, "TestLostReplyAboutANodeThatNobodyMayRead",
		},
		{
			"a MultiLock does not watch again what was written to",
			[]swap{{yield, " && !m.fired.Load()", ""}},
			locks, "TestMultiLockBehindANodeThatIsWritten",
		},
	}},
	{number: 81, failure: "code of users blocks", faults: []fault{
		{
			"who ends a hold asks its context",
			[]swap{{holdContext, "return isClosed(h.parentDone)", "return h.parent.Err() != nil"}},
			locks, "TestBlockingContextAndADeletedNode/Err",
		},
		{
			"a hold's contexts are children of the context given to Acquire",
			[]swap{{holdContext, "upper, detach := context.WithCancel(parent)", "upper, detach := parent, func() {}"}},
			locks, "TestBlockingContextAndADeletedNode/Value",
		},
		{
			"who tells of a loss waits until contexts are detached",
			[]swap{{ownership, "if s == nil || !s.Aside(", "if s != nil || !s.Aside("}},
			locks, "TestBlockingContextAndADeletedNode/Done",
		},
		{
			"Close waits for contexts for ever",
			[]swap{{jobs, "t := time.NewTimer(asideWait)", "t := time.NewTimer(1000*time.Hour + asideWait)"}},
			locks, "TestBlockingContextAndClose/Done",
		},
		{
			"a parent remembers the contexts of lost holds",
			[]swap{{ownership, "if ended := h.end(lost); len(ended) > 0 {", "if ended := h.end(lost); len(ended) < 0 {"}},
			locks, "TestParentForgetsContextsOfALostHold",
		},
		{
			"who releases asks the contexts of those in line",
			[]swap{{localQueue, "if !lq.passTo(o, w) {", "if w.ctx.Err() == nil && !lq.passTo(o, w) {"}},
			locks, "TestBlockingContextInLine/Err",
		},
		{
			"a socket is closed by whoever ends the connection",
			[]swap{{conn, "c.transport.wg.Go(c.shut)", "c.shut()"}},
			transport, "TestSocketThatDoesNotClose",
		},
		{
			"who reads waits until the socket is closed",
			[]swap{{conn, "_ = c.nc.SetDeadline(time.Unix(1, 0))\n", ""}},
			transport, "TestSocketThatDoesNotClose",
		},
		{
			"a context is detached before the lock is given back",
			[]swap{{hold, "ended := h.leave()\n", "ended := h.leave()\n\tdetach(ended)\n"}},
			locks, "TestBlockingContextAndARelease/Value",
		},
	}},
	{number: 82, failure: "somebody else has the lock while a context goes on", faults: []fault{
		{
			"what is closed may be connected later",
			[]swap{{calls, "if s.life.Err() != nil {\n\t\treturn ErrClosed\n\t}\n\tif failure", "if failure"}},
			locks, "TestTryAcquireOfAClosedClient",
		},
		{
			"a release gives the lock back first",
			[]swap{
				{hold, "ended := h.leave()\n", ""},
				{hold, "detach(ended)\n", "detach(h.leave())\n"},
			},
			locks, "TestContextsEndAlthoughTheReplyIsLate",
		},
		{
			"a lock is handed over first",
			[]swap{
				{hold, "ended := h.leave()\n", ""},
				{hold, "detach(ended)\n", "detach(h.leave())\n"},
			},
			locks, "TestContextsEndBeforeAHandover",
		},
		{
			"members are given back first",
			[]swap{
				{group, "\tfor _, d := range departures {\n\t\tended = append(ended, d.leave()...)\n\t}\n", ""},
				{group, "\tdetach(ended)\n", "\tfor _, d := range departures {\n\t\tended = append(ended, d.leave()...)\n\t}\n\tdetach(ended)\n"},
			},
			locks, "TestContextsEndBeforeTheLockIsGivenBack/multi/release",
		},
		{
			"a session is given up first",
			[]swap{
				{events, "\ttell(changes)\n\n\ts.mu.Lock()\n\tclosed := s.closed", "\ts.transport.Abandon(id)\n\ttime.Sleep(time.Millisecond)\n\ttell(changes)\n\n\ts.mu.Lock()\n\tclosed := s.closed"},
			},
			locks, "TestContextsEndBeforeASessionIsGivenUp",
		},
		{
			"who comes second goes on before the first has ended the contexts",
			[]swap{{ownership, "if o.state == Released || o.missedLocked(reason) {", "if o.state == Lost || o.state == Released || o.missedLocked(reason) {"}},
			locks, "TestContextsEndedByTwoAtOnce",
		},
		{
			"a session is closed first",
			[]swap{{sessionFile, "\ttell(lost)\n\tif losing", "\tdefer tell(lost)\n\tif losing"}},
			locks, "TestContextsEndBeforeTheLockIsGivenBack",
		},
		{
			"a transaction gives the lock back first",
			[]swap{
				{transaction, "defer detach(d.leaveForNow())\n", ""},
				{transaction, "results, err := t.send(ctx, leaves, d, opts)\n", "results, err := t.send(ctx, leaves, d, opts)\n\tdetach(d.leaveForNow())\n"},
			},
			locks, "TestContextsEndBeforeCommitAndRelease/mutex/done",
		},
		{
			"no context can be bound after a refused transaction",
			[]swap{{hold, "if resume && h.phase == contextsSuspended {", "if !resume && h.phase == contextsSuspended {"}},
			locks, "TestContextsEndBeforeCommitAndRelease/mutex/refused",
		},
		{
			"a context can be bound to a lost hold after a refused transaction",
			[]swap{{hold, "if resume && h.phase == contextsSuspended {", "if resume {"}},
			locks, "TestLossAroundARefusedTransaction",
		},
	}},
	{number: 83, failure: "the client is closed when it has lost its session", faults: []fault{
		{
			"a lost session is left to itself",
			[]swap{{"internal/transport/transport.go", "if session == 0 {\n\t\t\treturn nil", "if session == 0 || session == l.abandoned {\n\t\t\treturn nil"}},
			locks, "TestCloseInEveryState/lost,_and_the_server_comes_back",
		},
		{
			"a session is closed with credentials only",
			[]swap{{"internal/transport/transport.go", "return l.abandoned == id || l.closing", "return l.abandoned == id"}},
			locks, "TestCloseInEveryState/credentials_refused_from_now_on",
		},
		{
			"nodes are said to be gone that nobody has deleted",
			[]swap{{sessionFile, "if !errors.Is(err, transport.ErrNotTold) {", "if true {"}},
			locks, "TestCloseInEveryState/suspended",
		},
	}},
	{number: 61, failure: "an error from elsewhere is taken for an answer", faults: []fault{
		{
			"the end of a context matches its cause",
			[]swap{{foreign, "func (e *endError) Unwrap() error { return e.end }", "func (e *endError) Unwrap() []error { return []error{e.end, e.cause} }"}},
			locks, "TestEndOfAContextIsNoAnswer/framework.Client.Delete_if_it_exists,_in_flight",
		},
		{
			"the end of a context is its cause to retry",
			[]swap{{"retry/loop.go", "func (l *loop) ended() error { return foreign.ContextEnd(l.Context) }", "func (l *loop) ended() error {\n\t_ = foreign.ContextEnd\n\treturn context.Cause(l.Context)\n}"}},
			locks, "TestEndOfAContextIsNoAnswer/framework.Client.Get,_before",
		},
		{
			"what the caller's dialer says is an answer",
			[]swap{{transportFile, "o.err = usersError(inTime(ctx, o.err))", "o.err = inTime(ctx, o.err)"}},
			locks, "TestErrorsOfTheCallersNetworkAreNoAnswers/framework.Client.Exists,_dialing",
		},
		{
			"what the caller's connection says is an answer",
			[]swap{{conn, "return 0, fmt.Errorf(\"read: %w\", usersError(err))", "return 0, fmt.Errorf(\"read: %w\", err)"}},
			locks, "TestErrorsOfTheCallersNetworkAreNoAnswers/framework.Client.Exists,_in_flight",
		},
		{
			"what the caller's compression says is an answer",
			[]swap{{"framework/compression.go", "fmt.Errorf(\"decompress: %w\", foreign.Wrap(err))", "fmt.Errorf(\"decompress: %w\", err)"}},
			locks, "TestErrorsOfTheCallersCompressionAreNoAnswers",
		},
		{
			"the time for one attempt is the caller's",
			[]swap{{"framework/call.go", "if limited.Err() != nil && ctx.Err() == nil && ended(err) {", "if false {"}},
			framework, "TestTimeForOneAttemptIsNotTheCallers/get",
		},
		{
			"any lock that was lost is this one",
			[]swap{{"recipes/locks/lock.go", "errors.Is(err, released) {", "errors.Is(err, ErrLockLost) && errors.Is(released, ErrLockLost) {"}},
			locks, "TestDoTellsWhichLockWasLost",
		},
	}},
	{number: 62, failure: "a session that expired is told as a node that somebody deleted", faults: []fault{
		{
			"a node that is gone was deleted",
			[]swap{{"internal/session/gone.go", "e := new(GoneError)\n", "e := new(GoneError)\n\treason := ErrNodeDeleted\n\te.reason.Store(&reason)\n"}},
			locks, "TestWhyANodeIsGone/mutex_300ms_expired",
		},
		{
			"the end of the session does not say why its nodes are gone",
			[]swap{{events, "s.gone.settle(reason)", "_ = reason"}},
			locks, "TestWhyANodeIsGone/mutex_300ms_expired",
		},
		{
			"nobody asks why a node is gone",
			[]swap{{"internal/session/gone.go", "_ = c.Send(call)", "_ = call"}},
			locks, "TestWhyANodeIsGone/mutex_300ms_deleted",
		},
		{
			"it is asked without end",
			[]swap{{"internal/session/gone.go", "\t\ts.mu.Lock()\n\t\tdefer s.mu.Unlock()\n\t\tif s.conn == c {\n\t\t\ts.gone.asking = false\n\t\t}\n", "\t\ts.mu.Lock()\n\t\ts.gone.asking = false\n\t\ts.mu.Unlock()\n\t\ttime.AfterFunc(time.Millisecond, s.inquire)\n"},
				{"internal/session/gone.go", "\t\"sync/atomic\"\n", "\t\"sync/atomic\"\n\t\"time\"\n"}},
			locks, "TestWhenItIsKnownWhyANodeIsGone/refused,_and_then_a_write",
		},
		{
			"a session that was found again does not say that it lives",
			[]swap{{events, "s.gone.settle(ErrNodeDeleted) // those of this session, which lives", "_ = ErrNodeDeleted"}},
			locks, "TestWhenItIsKnownWhyANodeIsGone/found_again",
		},
	}},
	{number: 63, failure: "a wait that ended does not say what for", faults: []fault{
		{
			"nobody says who was in the way",
			[]swap{{attempt, "a.obstacle = a.policy.obstacle(a)", "_ = a.policy.obstacle(a)"}},
			locks, "TestWhoWasInTheWay/no_line",
		},
		{
			"a wait for a server that is dead looks as one for a holder",
			[]swap{{"recipes/locks/wait.go", "if !s.Writable() {", "if false {"}},
			locks, "TestNobodyCouldBeAsked/mutex",
		},
		{
			"an error of TryAcquire matches two of three",
			[]swap{{"recipes/locks/wait.go", "if e.tries {", "if false {"}},
			locks, "TestNobodyCouldBeAsked/mutex",
		},
		{
			"a MultiLock names its first member",
			[]swap{{multi, "\t\tif m.waits() {\n\t\t\tv := ", "\t\tif m.snapshot != nil {\n\t\t\tv := "}},
			locks, "TestMemberThatCouldNotBeHad",
		},
	}},
	{number: 64, failure: "an error leads to the wrong place", faults: []fault{
		{
			"the right to create is missing on the node itself",
			[]swap{{"internal/session/refusal.go", "return \"CREATE\", above(path)", "return \"CREATE\", path"}},
			locks, "TestRefusedAccessToALock",
		},
		{
			"a lost hold names its node without chroot and namespace",
			[]swap{{ownership, "o.endLocked(Lost, lostError(o.nodePath(), reason))", "o.endLocked(Lost, lostError(o.path, reason))"}},
			locks, "TestPathsOfLostHoldsAreInFull/mutex",
		},
		{
			"a commit names its node without chroot and namespace",
			[]swap{{"recipes/locks/transaction.go", "return opError(\"commit\", t.hold.node(), err)", "return opError(\"commit\", t.hold.Path(), err)"}},
			locks, "TestPathsOfLostHoldsAreInFull/mutex",
		},
		{
			"a missing chroot looks as a missing parent",
			[]swap{{"framework/create.go", "errors.Is(err, ErrNoNode) && (cr.opts.parents || cr.prefix != \"\"):", "errors.Is(err, ErrNoNode) && (cr.opts.parents || cr.namespace != \"\"):"}},
			framework, "TestCreateBelowAMissingChroot",
		},
		{
			"servers behind a chroot are a part of it",
			[]swap{{"framework/connectstring.go", "if strings.Contains(chroot, \",\") {", "if chroot == \",\" {"}},
			framework, "TestChrootWithAComma",
		},
		{
			"sessions are told in decimal",
			[]swap{{events, "fmt.Sprintf(\"%#x\", uint64(id))", "fmt.Sprintf(\"%d\", uint64(id))"}},
			locks, "TestSessionsAreToldInHexadecimal",
		},
	}},
	{number: 84, failure: "a client's own load ends its session", faults: []fault{
		{
			"as much is sent as servers bear",
			[]swap{{window, "switch late := took > aim+w.timeout/tooLong; {", "w.size = mostOutstanding\n\tswitch late := took > time.Hour; {"}},
			locks, "TestOwnLoadLosesNoHold",
		},
		{
			"the first burst is as large as any",
			[]swap{{window, "firstThroughput  = 512", "firstThroughput  = 512 << 10"}},
			session, "TestWindowBeginsSmall",
		},
		{
			"the window never grows again",
			[]swap{{window, "w.size = min(w.size+1+w.size/8, mostOutstanding)", "_ = w.size"}},
			session, "TestWindowOnAnotherWay",
		},
	}},
	{number: 85, failure: "the leader has not heard of what a member has", faults: []fault{
		{
			"a write needs no voucher before it",
			[]swap{{leaseFile, "for n < l.full && !l.touches[n].vouched.After(by) {", "for n < len(l.touches) && !l.touches[n].received.After(by.Add(-l.terms.relay())) {"}},
			leasePkg, "TestProvedByTheQuorum",
		},
		{
			"one voucher is enough",
			[]swap{{leaseFile, "for n < l.full && !l.touches[n].vouched.After(by) {", "for n < l.half && !l.touches[n].vouched.After(by) {"}},
			leasePkg, "TestProvedByTheQuorum",
		},
		{
			"a voucher may come before the ping is due",
			[]swap{{leaseFile, "return l.touches[i].received.Add(l.terms.pingDue())", "return l.touches[i].received"}},
			leasePkg, "TestProvedByTheQuorum",
		},
		{
			"the second voucher follows the first at once",
			[]swap{{leaseFile, "l.touches[i].vouched.Add(l.terms.late())", "l.touches[i].vouched"}},
			leasePkg, "TestProvedByTheQuorum",
		},
		{
			"the second voucher follows the touch too soon",
			[]swap{{leaseFile, "later(l.touches[i].received.Add(l.terms.relay()), ", "later(l.touches[i].received, "}},
			leasePkg, "TestProvedByTheQuorum",
		},
		{
			"a confirmation may leave before the voucher is answered",
			[]swap{{leaseFile, "vouched.After(by) {", "vouched.After(by.Add(l.terms.relay())) {"}},
			leasePkg, "TestProvedByTheQuorum",
		},
		{
			"a server that answers by itself vouches",
			[]swap{{events, "case a.Led:", "case !a.Write:"}},
			locks, "TestSessionThatCannotBeProved",
		},
		{
			"a refused sync vouches",
			[]swap{{conn, "call.op == wire.OpSync && h.Code == wire.CodeOK", "call.op == wire.OpSync"}},
			locks, "TestSessionThatCannotBeProved",
		},
		{
			"the touches of a former connection count",
			[]swap{{leaseFile, "touches := l.touches[:0]", "touches := l.touches"}},
			leasePkg, "TestAnotherConnection",
		},
		{
			"a longer timeout stretches what was proved before",
			[]swap{{leaseFile, "l.terms, l.heard = terms, until\n", "l.terms, l.heard = terms, until\n\tif !l.proved.IsZero() {\n\t\tl.proved = l.newest.Add(terms.Span())\n\t}\n"}},
			leasePkg, "TestAnotherTimeoutAtRenewal",
		},
		{
			"a shorter timeout shortens nothing",
			[]swap{{leaseFile, "if terms.Timeout < l.terms.Timeout && until.Before(l.proved) {", "if false {"}},
			leasePkg, "TestAnotherTimeoutAtRenewal",
		},
		{
			"one name stands for one server",
			[]swap{{"framework/config.go", "\t\tLease:        rules[p.SessionLease],", "\t\tLease:        max(rules[p.SessionLease], lease.Rule(max(0, 2-len(p.servers)))),"}},
			locks, "TestOneNameForAnEnsemble",
		},
	}},
	{number: 86, failure: "a healthy hold is lost", faults: []fault{
		{
			"a renewal begins when the one before has ended",
			[]swap{{schedule, "begin := l.began.Add(p.pace)", "begin := l.began.Add(p.pace + l.Takes())"}, {schedule, "now.Sub(l.began) >= p.pace-p.merge", "now.Sub(l.began) >= p.pace+l.Takes()"}},
			locks, "TestHoldStandsAPause",
		},
		{
			"nothing is sent for a voucher",
			[]swap{{schedule, "case l.touches[i].wanted:\n\t\t\tdue = Sooner(due, at)", "case l.touches[i].wanted:"}},
			leasePkg, "TestSteadyRoundTrips",
		},
		{
			"renewals take no account of slow writes",
			[]swap{{schedule, "behind > timeout/slowWrite && use == Held", "behind > timeout && use == Held"}},
			leasePkg, "TestSteadyRoundTrips",
		},
		{
			"renewals do not hurry after a pause",
			[]swap{{schedule, "if use == Held && l.proved.Sub(now) < spare-p.pace-timeout/merge {", "if false {"}},
			leasePkg, "TestTwoPauses",
		},
		{
			"a refused renewal is repeated at once",
			[]swap{{schedule, "b.until = now.Add(b.pause)", "b.until = now"}},
			locks, "TestRefusedRenewalsArePaced",
		},
		{
			"a refused renewal is not repeated",
			[]swap{{schedule, "l.written = time.Time{}\n\t\tl.write", "l.write"}},
			leasePkg, "TestRefusedRenewals",
		},
		{
			"a hold is granted with nothing left",
			[]swap{{schedule, "if until.IsZero() || until.Sub(now) < l.terms.Timeout/leastClaim {", "if until.IsZero() {"}},
			leasePkg, "TestEnoughForAHold",
		},
		{
			"a hold is granted that the first renewal comes too late for",
			[]swap{{schedule, "return !steady || !l.expected(now)", "return steady || !l.expected(now)"}},
			locks, "TestHoldStandsLongRoundTrips",
		},
		{
			"the first hold rests on what was proved before it",
			[]swap{{schedule, "!l.held.IsZero() && !l.newest.Before(l.held)", "l.newest.After(l.connect)"}},
			leasePkg, "TestFreeLockBelowNewParents",
		},
		{
			"renewals of a client without holds go on with the first hold",
			[]swap{{schedule, "\tif !l.inTheWay() {", "\tif true {"}},
			leasePkg, "TestFreeLockBelowNewParents",
		},
		{
			"renewals hurry where writes are slow",
			[]swap{{schedule, "return l.planBehind(behind, p)", "p = l.planBehind(behind, p)"}},
			leasePkg, "TestFreeLockBelowNewParents",
		},
		{
			"syncs are taken to be as slow as connecting was",
			[]swap{{schedule, "took > t.slow || t.guessed {", "took > t.slow {"}},
			leasePkg, "TestFreeLockBelowNewParents",
		},
		{
			"nothing is asked for while nothing is held",
			[]swap{{loop, "case s.ready:\n\t\treturn lease.Ready", "case s.ready:\n\t\treturn lease.Unused"}},
			locks, "TestFirstLockAfterIdling",
		},
		{
			"nobody is told that holds are about to be lost",
			[]swap{{loop, "if short := s.lease.Short(); short.After(now) {", "if short := s.lease.Short(); !short.IsZero() {"}},
			locks, "TestSessionThatCannotBeProved",
		},
		{
			"a lock that cannot be held is kept from others",
			[]swap{{tracked, "enough := time.NewTimer(2 * s.Timeout())", "enough := time.NewTimer(200 * s.Timeout())"}},
			locks, "TestSessionThatCannotBeProved",
		},
		{
			"any session timeout will do",
			[]swap{{tracked, "case s.conn.Timeout() < lease.LeastTimeout:", "case s.conn.Timeout() <= 0:"}},
			locks, "TestSessionTimeoutThatIsTooShort",
		},
	}},
	{number: 87, failure: "a request is larger than servers accept", faults: []fault{
		{
			"a check knows no bytes",
			[]swap{{tracked, "r.bytes -= pathOpSize + len(path)", "r.bytes -= 0"}},
			locks, "TestRenewalsHeedTheFrameLimit",
		},
		{
			"watches are set again in one request",
			[]swap{{watches, "if size+more > w.mostBytes-setWatchesFrame {", "if size+more > setWatchesSize+w.mostBytes-w.mostBytes {"}},
			locks, "TestRenewalsHeedTheFrameLimit",
		},
		{
			"all leases are given back in one request",
			[]swap{{removal, "(room.take(b.left[n].path) || n == 0)", "(room.take(b.left[n].path) || n >= 0)"}},
			locks, "TestReleaseHeedsTheFrameLimit",
		},
	}},
	{number: 88, failure: "memory grows with what is read", faults: []fault{
		{
			"replies are remembered until a write confirms them",
			[]swap{{leaseFile, "for n < len(l.touches) && now.Sub(l.touches[n].sent) >= l.terms.Timeout {", "for n < 0 {"}},
			leasePkg, "TestMemoryIsBounded",
		},
		{
			"replies are remembered that prove nothing",
			[]swap{{leaseFile, "if l.terms.Rule == ByServer {\n\t\treturn false\n\t}\n\tif r.Evidence", "if r.Evidence"}, {leaseFile, "l.forget(r.Received)\n\treturn", "if l.terms.Rule != ByServer {\n\t\tl.forget(r.Received)\n\t}\n\treturn"}},
			leasePkg, "TestMemoryIsBounded",
		},
	}},
	{number: 65, failure: "a transaction's reply is lost, and others go on", faults: []fault{
		{
			"a lock that was lost is as good as held",
			[]swap{{"framework/readback.go", "return v, unsettled(\"the lock's node is gone\", &session.GuardError{Path: p.path, Err: err})", "continue"}},
			locks, "TestCommitWithoutAReply/the_same_work_of_the_next_owner",
		},
		{
			"what another reader has done is ours",
			[]swap{{"framework/readback.go", "case !p.exclusive:", "case false:"}},
			locks, "TestCommitWithoutAReply/the_same_work_of_another_reader",
		},
		{
			"who may hold a lease with others is alone",
			[]swap{{transaction, "Exclusive: o.queue.exclusive}", "Exclusive: o.queue.exclusive || o.queue.Kind == \"lease-\"}"}},
			locks, "TestCommitWithoutAReply/the_same_work_of_another_holder_of_a_lease",
		},
		{
			"a write without a reply was not applied, as nobody could be asked since",
			[]swap{{"framework/readback.go", "all := []error{ErrOutcomeUnknown}", "all := []error{ErrOutcomeUnknown, e.later}"}},
			framework, "TestUnansweredAfterALostReply",
		},
		{
			"a refusal after a lost reply is the outcome",
			[]swap{{"framework/readback.go", "if err == nil || !bool(*d) || Ambiguous(err) {", "if err == nil || !bool(*d) || Ambiguous(err) || isRefusal(err) {"}},
			framework, "TestRefusedAfterALostReply",
		},
		{
			"a transaction is sent again because others may be",
			[]swap{{"framework/readback.go", "if !t.idempotent {", "if false {"}},
			framework, "TestRepeatedByAClassifierOfTheCaller",
		},
		{
			"what is refused after a lost reply was not applied",
			[]swap{{"internal/session/errors.go", "func (e *UnsettledError) Unwrap() error { return ErrOutcomeUnknown }", "func (e *UnsettledError) Unwrap() []error { return []error{ErrOutcomeUnknown, e.Refused} }"}},
			framework, "TestTransactionSentAgainAndRefused",
		},
		{
			"what may not be read was not applied",
			[]swap{{"framework/readback.go", "return nil, unsettled(\"reading back\", err)", "t.doubt = false\n\t\treturn nil, err"}},
			framework, "TestTransactionThatMayNotBeReadBack",
		},
		{
			"a receipt that went with its session was not made",
			[]swap{{"framework/receipt.go", "case errors.Is(err, ErrNoNode) && c.Session() == t.askedIn:", "case errors.Is(err, ErrNoNode):"}},
			framework, "TestReceiptWithoutAnAnswer/expired",
		},
		{
			"receipts stay",
			[]swap{{"framework/transaction.go", "attempts.receipt.remove(o)", "_ = attempts.receipt"}},
			framework, "TestReceipt/none",
		},
		{
			"a later change is told as the transaction's",
			[]swap{{"framework/receipt.go", "now.Stat.Mzxid == made.Stat.Czxid", "made.Stat.Czxid > 0"}},
			framework, "TestReceiptOfNodesThatHaveChanged",
		},
		{
			"a transaction that cannot have been applied stays in doubt",
			[]swap{{"framework/readback.go", "t.doubt = t.doubt && doubt(c.Session() != t.askedIn)", "_ = t.askedIn"}},
			locks, "TestCommitThatWasNotAppliedIsFenced",
		},
	}},
	{number: 91, failure: "a call needs more requests than servers answer within a session", faults: []fault{
		{
			"all of them are on their way at once",
			[]swap{{burst, "batchesAhead = 2\n", "batchesAhead = 1 << 10\n"}},
			locks, "TestRequestsOnTheirWay",
		},
		{
			"a batch is larger than what servers answer in time",
			[]swap{{burst, "min(batchCalls, b.session.window.most()/batchesAhead)", "batchCalls"}},
			locks, "TestBatchesFitIntoTheWindow",
		},
		{
			"the watches on thousands of leases are set at once",
			[]swap{{tracked, "mostWatching = MostAhead", "mostWatching = 1 << 20"}},
			locks, "TestRequestsOnTheirWay",
		},
		{
			"the deletion of thousands of nodes is one request each",
			[]swap{{removal, "for n < len(b.left) && ", "for n < min(len(b.left), 1) && "}},
			locks, "TestThousandsOfLeases",
		},
		{
			"those that are refused together are not tried one by one",
			[]swap{{removal, "b.session.removeLater(b.id, batch)\n\t\t}\n", "}\n"}},
			locks, "TestThousandsOfLeasesWhoseDeletionFails/one_is_gone",
		},
		{
			"each creation in doubt has lists of its own",
			[]swap{{sweeps, "for _, protection := range s.sweeps[where] {", "todo := s.sweeps[where]\n\tfor _, protection := range todo[:min(len(todo), 1)] {"},
				{sweeps, "s.sweeps[where] = []string{} //", "s.sweeps[where] = todo[min(len(todo), 1):] //"}},
			locks, "TestSweepsShareTheirLists",
		},
		{
			"one request lists all queues, however long their paths",
			[]swap{{"internal/session/lists.go", "room < 0 && n > from {", "room < 0 && n < from {"}},
			locks, "TestOrderedMultiLockWithLongPaths",
		},
	}},
	{number: 92, failure: "functions of users panic or end the goroutine while they use a lock", faults: []fault{
		{
			"the local queue of a mutex has no leader then",
			[]swap{{localQueue, "if o == nil {\n\t\t\tlq.stepDown(a)", "if o == nil && err != nil {\n\t\t\tlq.stepDown(a)"}},
			locks, "TestUserCodeFailsAtAnyCall/mutex,_acquire,_taken",
		},
		{
			"a waiter in the local queue stays there",
			[]swap{{localQueue, "if !heard {", "if !heard && w == nil {"}},
			locks, "TestUserCodeFailsAtAnyCall/mutex,_acquire,_taken_here",
		},
		{
			"the leases of a semaphore stay",
			[]swap{{attempt, "\tif !a.resumable {\n\t\ta.Leave()\n\t}\n\ta.policy", "\tif !a.resumable && *err != nil {\n\t\ta.Leave()\n\t}\n\ta.policy"}},
			locks, "TestUserCodeFailsAtAnyCall/semaphore,_acquire,_taken_here",
		},
		{
			"the nodes of a MultiLock stay",
			[]swap{{attempt, "\tif !a.resumable {\n\t\ta.Leave()\n\t}\n\ta.policy", "\tif !a.resumable && *err != nil {\n\t\ta.Leave()\n\t}\n\ta.policy"}},
			locks, "TestUserCodeFailsAtAnyCall/multi,_acquire,_taken_here",
		},
		{
			"a transaction that releases keeps the hold",
			[]swap{{transaction, "if !returned {", "if !returned && leaves == nil {"}},
			locks, "TestUserCodeFailsAtAnyCall/mutex,_commit_and_release,_taken_here",
		},
		{
			"a listener panics in silence",
			[]swap{{ownership, ", OnPanic: o.panicked", ""}},
			locks, "TestListenerOfAHoldThatFails/panic",
		},
	}},
	{number: 93, failure: "a lock is deleted with its parent", faults: []fault{
		{
			"a waiter for a mutex fails",
			[]swap{{exchange, "\t\tcase errors.Is(err, zk.ErrNoNode):\n\t\t\tchildren = wire.Names{}", "\t\tcase errors.Is(err, zk.ErrNoNode) && !a.resumable:\n\t\t\tchildren = wire.Names{}"}},
			locks, "TestCrowdWhoseQueueIsDeleted/mutex",
		},
		{
			"a waiter for a semaphore fails",
			[]swap{{exchange, "\t\tcase errors.Is(err, zk.ErrNoNode):\n\t\t\tchildren = wire.Names{}", "\t\tcase errors.Is(err, zk.ErrNoNode) && a.resumable:\n\t\t\tchildren = wire.Names{}"}},
			locks, "TestCrowdWhoseQueueIsDeleted/semaphore",
		},
		{
			"a waiter asks without a pause while it is deleted over and over",
			[]swap{{attempt, "max(failures, a.deletions.inARow)", "failures"}},
			locks, "TestWaiterDeletedOverAndOver/mutex",
		},
		{
			"a parent that cannot be made for long ends the wait",
			[]swap{{acquireQueue, " ||\n\t\terrors.Is(err, session.ErrKeepsVanishing)", ""}},
			locks, "TestQueueDeletedOverAndOver/made/mutex",
		},
	}},
	{number: 94, failure: "several locks are tried without waiting", faults: []fault{
		{
			"each queue is looked at with a request of its own",
			[]swap{{multi, "err := a.listBefore(ctx, c, all)\n", "a.apart = true\n\terr := a.listBefore(ctx, c, all)\n"}},
			locks, "TestRoundTripsOfTryingAMultiLock",
		},
	}},
	{number: 95, failure: "a reply is lost in a queue that is longer than a reply may be", faults: []fault{
		{
			"the session's own nodes are not asked for",
			[]swap{{nodeName, "if !errors.Is(err, ErrReplyTooLarge) ||", "if err != ErrReplyTooLarge ||"}},
			locks, "TestReplyLostInALongQueue/3.6_and_later/mutex",
		},
		{
			"servers before 3.6 are asked over and over",
			[]swap{{nodeName, "mostEphemeralsLost = 2", "mostEphemeralsLost = 1 << 20"}},
			locks, "TestReplyLostInALongQueue/before_3.6,_the_connection_ends/mutex",
		},
	}},
	{number: 96, failure: "a client waits for a lock that it holds itself", faults: []fault{
		{
			"it is not logged",
			[]swap{{longwait, "case own > w.spare && waited >= 2*logged.own:", "case own > w.spare && waited < 0:"}},
			locks, "TestWaitingForALockThatTheClientHoldsIsLogged/mutex",
		},
		{
			"waits in a local queue are not logged",
			[]swap{{longwait, "\twl.localQueues.eachWait(note)\n", ""}},
			locks, "TestWaitingForALockThatTheClientHoldsIsLogged/mutex",
		},
		{
			"a wait that begins as the timer ends is not logged",
			[]swap{{longwait, "\twaits := wl.longest()\n\tif len(waits) == 0 || ", "\tvar waits map[string]*longestWait\n\tif len(waits) == 0 || "}},
			locks, "TestWaitThatFindsTheTimerSet",
		},
	}},
	{number: 98, failure: "a Release is forgotten, and nobody waits", faults: []fault{
		{
			"a lock that is held for long is not logged",
			[]swap{{loop, "\tif n == 0 {\n\t\treturn nil\n\t}\n\tpath, age", "\tif n >= 0 {\n\t\treturn nil\n\t}\n\tpath, age"}},
			locks, "TestLongHoldIsLoggedOnce",
		},
	}},
	{number: 99, failure: "a client is idle, or only reads, for a day", faults: []fault{
		{
			"what was sent is remembered for ever",
			[]swap{{leaseFile, "\tif n > 0 {\n\t\tl.drop(n)", "\tif n > len(l.touches) {\n\t\tl.drop(n)"}},
			locks, "TestMemoryOfADay/idle",
		},
	}},
}
