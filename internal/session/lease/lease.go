// Package lease computes until when the servers cannot have ended a session. It also says
// when to send which request to prove the session for longer. It has no clock, no
// goroutine and no connection: its caller says what was sent and answered, and at what
// time. Package session counts the session as lost by it (state.go).
//
// # What is proved
//
// The servers end a session one timeout after they last heard of its client. A
// standalone server hears of it with each request, so each reply proves the
// session until the sending of its request plus the timeout (ByServer).
//
// In an ensemble the leader counts. A follower answers pings and reads by
// itself, also for some time after it has lost its leader. It tells the leader
// whom it has heard when it answers the leader's pings, which come every half
// tick. So four requests on one connection prove a session (ByQuorum):
//
//   - A touch: any request, sent at s, answered at t1.
//   - A first voucher: a request that the leader answers (a sync, or a committed
//     write), sent no earlier than t1 + D, answered at v1.
//   - A second voucher, sent no earlier than v1 + E and t1 + R, answered at v2.
//   - A confirmation: a committed write, sent no earlier than v2. However long it
//     takes, it proves the session until s plus the timeout.
//
// D is the time between two pings: half a tick, which is at most a quarter of the timeout
// T unless minSessionTimeout was lowered. E is T/24. R is T/3, or D + T/24 if the
// servers' tick is stated. One request may be several of these for different touches. A
// follower passes a request to connect on to the leader, so it needs the confirmation
// only.
//
// # Why it is proved
//
//  1. The touch is answered, so the follower had heard of the client by t1.
//  2. The leader's next ping to the follower is due by t1 + D. The leader answers
//     the first voucher after that. It may have stood still meanwhile, and answer
//     requests before it sends the ping that is overdue. But if it queues the
//     ping within E of that answer, the ping is queued before the answer to the
//     second voucher, which is sent E after v1.
//  3. Ping and answer use one queue and one connection, which the follower reads
//     in order. It answers the ping, with all sessions that it has heard of since
//     its last such answer, before it handles the answer to the second voucher,
//     and so before v2.
//  4. The confirmation is sent after v2. So the follower passes it on behind its
//     answer to the ping. A leader that handles the confirmation has handled the
//     touch before, and after s.
//  5. The confirmation was committed. So its leader had a majority, and had not begun to
//     end the session when it handled the write. Otherwise it would have refused the
//     write. So the touch counted, and this leader keeps the session until s + T or
//     later.
//  6. A later leader is elected after the confirmation was committed, and gives
//     each session its full timeout. A follower that changes its leader closes
//     the connections of its clients, so all of this is about one leader.
//
// It does not matter how long requests, replies and disks take, or how long a server
// stood still. The argument assumes the tick as above, and pings that are late by E at
// most, as in step 2. It assumes that the rates of clocks differ by no more than one
// percent. It assumes that all servers grant the same timeout, and that no observer is
// behind another (ObserverMaster). docs/decisions/001-session-lease.md says how late
// pings are, and what else was considered.
//
// Source: ZooKeeper's Leader.lead and processSync, LearnerHandler.ping and run,
// Learner.ping and request, LearnerSessionTracker, SessionTrackerImpl.
package lease

import "time"

// Rule says what proves that the servers keep a session.
type Rule int8

// The rules.
const (
	// ByQuorum trusts what committed writes have confirmed.
	ByQuorum Rule = iota
	// ByServer trusts each reply, which is right for a standalone server.
	ByServer
)

// Terms are what a lease is computed from.
type Terms struct {
	Rule    Rule
	Timeout time.Duration // of the session, as granted
	Tick    time.Duration // no less than the servers'; 0 stands for half of the timeout
}

// A deadline is earlier than the servers' timeout by these two. The first is a part of
// the timeout, for clocks that differ by a percent. The second is for timers and
// goroutines that are late. On one busy processor they are late by 40 ms.
const (
	rateAllowance  = 64
	timerAllowance = 30 * time.Millisecond
)

// LeastTimeout is the shortest session timeout for which holds are granted. The
// allowance, and the times by which a lease tolerates late pings, are too small a
// part of a second below it, or too small for what schedulers do.
const LeastTimeout = time.Second

// Span is for how long after a request was sent it can prove a session.
func (t Terms) Span() time.Duration { return t.Timeout - t.Timeout/rateAllowance - timerAllowance }

// pingDue is D: how long it takes until the leader has to ping.
func (t Terms) pingDue() time.Duration {
	if t.Tick > 0 {
		return t.Tick / 2
	}
	return t.Timeout / 4
}

// late is E: how much later than a first answer of the leader its ping may be.
func (t Terms) late() time.Duration { return max(t.Timeout/24, leastLate) }

// leastLate is the least E. A ping is late because of how a busy machine schedules
// threads, which does not depend on the session timeout.
const leastLate = 200 * time.Millisecond

// relay is R: how long after a touch its second voucher may be sent.
func (t Terms) relay() time.Duration {
	if t.Tick > 0 {
		return t.pingDue() + t.Timeout/24
	}
	return t.Timeout / 3
}

// spacing is the least time between two touches that are remembered. To remember more
// would change the lease by a small part of the timeout only.
func (t Terms) spacing() time.Duration { return t.Timeout / 96 }

// Evidence is which step of a proof a reply can be.
type Evidence int8

// The kinds of evidence. Each is also those before it.
const (
	Touch        Evidence = iota // the server that we are connected to has answered
	Voucher                      // the leader has answered
	Confirmation                 // a majority has logged it
)

// Reply is one request that was answered.
type Reply struct {
	Sent     time.Time // no later than when it was written
	Received time.Time
	Evidence Evidence
}

// touch is a request whose answer has still to be proved.
type touch struct {
	sent, received time.Time
	vouched        time.Time // when the last of its vouchers so far was answered
	wanted         bool      // a renewal began with it
}

// Lease is what the client knows of one session. The zero value is for no session. It is
// not safe for concurrent use.
type Lease struct {
	terms  Terms
	heard  time.Time // until when the server that we are connected to keeps the session, if it decides
	proved time.Time // until when the quorum keeps it; zero if nothing is proved
	newest time.Time // sending of the newest touch that is proved

	// touches are in the order in which they were answered. The first full of them
	// have both vouchers, the first half of them have one or both.
	touches    []touch
	full, half int

	schedule
}

// Begin starts a connection whose connect request was sent at connect and
// answered at now. A session that is continued keeps what was proved; if it has a
// shorter timeout than before, only as far as that reaches.
func (l *Lease) Begin(terms Terms, connect, now time.Time, fresh bool) {
	touches := l.touches[:0]
	if fresh {
		*l = Lease{schedule: schedule{begun: l.begun}}
	}
	until := connect.Add(terms.Span())
	if terms.Timeout < l.terms.Timeout && until.Before(l.proved) {
		l.proved = until
	}
	l.terms, l.heard = terms, until
	l.touches, l.half, l.full = append(touches, touch{sent: connect, received: connect, vouched: connect, wanted: true}), 1, 1
	l.schedule = newSchedule(connect, now, l.begun[:0])
}

// Timeout is the session's, 0 without one.
func (l *Lease) Timeout() time.Duration { return l.terms.Timeout }

// Deadline is when the lease ends by the rule of its terms; the zero time if
// nothing is proved.
func (l *Lease) Deadline() time.Time {
	if l.terms.Rule == ByServer {
		return l.heard
	}
	return l.proved
}

// Heard is when the lease ends by the rule ByServer: the server that we are connected to
// decides. A session without holds is given up then.
func (l *Lease) Heard() time.Time { return l.heard }

// Replied handles a reply. Replies must come in the order in which they were received. It
// reports whether Renew may have something new to do.
func (l *Lease) Replied(r Reply) (news bool) {
	raise(&l.heard, r.Sent.Add(l.terms.Span()))
	if l.terms.Rule == ByServer {
		return false
	}
	if r.Evidence >= Voucher {
		l.answered(r)
	}
	if r.Evidence >= Confirmation {
		news = l.confirm(r.Sent)
	}
	if r.Evidence >= Voucher {
		news = l.vouch(r) || news
	}
	l.forget(r.Received)
	return l.remember(r) || news
}

// confirm proves the touches that were vouched for by the time given.
func (l *Lease) confirm(by time.Time) bool {
	n := 0
	for n < l.full && !l.touches[n].vouched.After(by) {
		raise(&l.newest, l.touches[n].sent)
		n++
	}
	if n == 0 {
		return false
	}
	raise(&l.proved, l.newest.Add(l.terms.Span()))
	l.drop(n)
	return true
}

// vouch handles a voucher.
func (l *Lease) vouch(r Reply) (news bool) {
	for l.full < l.half && !r.Sent.Before(l.secondDue(l.full)) {
		l.touches[l.full].vouched = r.Received
		l.full++
		news = true
	}
	for l.half < len(l.touches) && !r.Sent.Before(l.firstDue(l.half)) {
		l.touches[l.half].vouched = r.Received
		l.half++
		news = true
	}
	return news
}

// firstDue is when the first voucher of a touch can be sent, secondDue when the
// second one can. Neither falls from one touch to the next.
func (l *Lease) firstDue(i int) time.Time { return l.touches[i].received.Add(l.terms.pingDue()) }

func (l *Lease) secondDue(i int) time.Time {
	return later(l.touches[i].received.Add(l.terms.relay()), l.touches[i].vouched.Add(l.terms.late()))
}

// remember keeps a touch, unless it is close to the one before. The first touch that was
// sent since a renewal began belongs to that renewal.
func (l *Lease) remember(r Reply) (news bool) {
	n, begun := len(l.touches), 0
	for begun < len(l.begun) && !r.Sent.Before(l.begun[begun]) {
		begun++
	}
	if begun == 0 && n > 0 && r.Sent.Sub(l.touches[n-1].sent) < l.terms.spacing() {
		return false
	}
	l.begun = append(l.begun[:0], l.begun[begun:]...)
	l.touches = append(l.touches, touch{sent: r.Sent, received: r.Received, wanted: begun > 0})
	return begun > 0
}

// forget drops touches that cannot prove anything any more.
func (l *Lease) forget(now time.Time) {
	n := 0
	for n < len(l.touches) && now.Sub(l.touches[n].sent) >= l.terms.Timeout {
		n++
	}
	if n > 0 {
		l.drop(n)
	}
}

func (l *Lease) drop(n int) {
	l.touches = append(l.touches[:0], l.touches[n:]...)
	l.half, l.full = max(0, l.half-n), max(0, l.full-n)
}

func raise(t *time.Time, to time.Time) {
	if to.After(*t) {
		*t = to
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
