package lease

import "time"

// Use says what a session is used for, and so which requests are worth sending.
type Use int8

// The uses of a session.
const (
	Unused Use = iota // nothing is asked for
	Ready             // so that the next creation is enough to grant a hold
	Held              // so that holds are granted soon, and go on
)

// Step is what to send, together if it is both.
type Step int8

// The steps of a renewal.
const (
	Sync  Step = 1 << iota // a request that the leader answers
	Write                  // one that a majority logs
)

// schedule is what has been sent, and when more may be.
//
// A renewal begins with a request that becomes a touch. Its two vouchers and its
// confirmation follow, each as soon as it may be sent. A new renewal begins at each pace,
// whether or not earlier ones are complete, so several are under way at once. The user's
// requests count as well, and a request for one renewal counts for all.
//
// Servers answer in the order of the requests, so a request behind a slow write is
// answered as late as the write. If writes take longer than syncs, renewals are so far
// apart that no voucher is sent behind a confirmation.
//
// The pace follows from the time that a renewal takes, by the slowest of the recent
// answers. With this pace the servers may pause for a third of the timeout at any moment.
// If round trips are long, they may pause for three quarters of the time that is left.
type schedule struct {
	connect     time.Time // when the connect request was sent
	sync, write trip
	synced      time.Time   // sending of the last sync of ours
	began       time.Time   // when the last renewal began
	begun       []time.Time // when those began whose touch has not been answered
	written     time.Time   // sending of the newest touch with a confirmation on its way
	wrote       time.Time   // when a write was answered last
	held        time.Time   // since when there is a hold, or a wish for one; zero if there is none
}

// trip is what is known of requests of one kind.
type trip struct {
	slow    time.Duration // the slowest of the recent answers
	guessed bool          // none so far, and the connect request took so long
	Backoff
}

func (t *trip) answered(took time.Duration) {
	if t.slow -= (t.slow - took) / 4; took > t.slow || t.guessed {
		t.slow, t.guessed = took, false
	}
	t.Backoff = Backoff{}
}

// Backoff says when a request may be repeated that was refused. The zero value
// says at once.
type Backoff struct {
	until time.Time
	pause time.Duration
}

// Refused puts off the next request, for twice as long each time.
func (b *Backoff) Refused(now time.Time, timeout time.Duration) {
	b.pause = min(max(timeout/leastPause, 2*b.pause), timeout/mostPause)
	b.until = now.Add(b.pause)
}

// Until is until when the next request is put off.
func (b *Backoff) Until() time.Time { return b.until }

// Parts of the session timeout.
const (
	heldPace      = 4  // how late one renewal follows another
	leastPace     = 48 // how soon
	readyPace     = 3  // the same while nothing is held
	reserve       = 3  // what a pause of the servers may take,
	reserveMore   = 48 // and how late a renewal may be besides
	merge         = 24 // by which one is put off at most to begin with the voucher of another
	slowWrite     = 24 // how much longer writes take than syncs to be slow
	verySlowWrite = 8  // to be in the way of the next renewal
	leastSync     = 96 // how soon one sync follows another when all are worth it
	leastPause    = 64 // after a refusal
	mostPause     = 8
	leastToGrant  = 16 // what must be left of the lease for a hold to be granted
	nearlyOver    = 8  // what is left when a warning is due
	leastMargin   = 64 // by which a renewal is expected to come before the end
)

// newSchedule is that of a connection. Its connect request is the first that has
// gone to the leader and back.
func newSchedule(connect, now time.Time, begun []time.Time) schedule {
	t := trip{slow: now.Sub(connect), guessed: true}
	return schedule{connect: connect, sync: t, write: t, began: connect, begun: begun}
}

// answered learns how long the leader took. A sync may have had to wait for a write; for
// such a sync the time is only an upper limit.
func (l *Lease) answered(r Reply) {
	took := r.Received.Sub(r.Sent)
	switch {
	case r.Evidence == Confirmation:
		l.write.answered(took)
		l.wrote = r.Received
	case r.Sent.Before(l.wrote):
		l.sync.slow = min(l.sync.slow, took)
		l.sync.Backoff = Backoff{}
	default:
		l.sync.answered(took)
	}
}

// Refused says that the servers refused a step. It is repeated after a pause, which is
// longer the next time.
func (l *Lease) Refused(s Step, now time.Time) {
	if s&Sync != 0 {
		l.synced = time.Time{}
		l.sync.Refused(now, l.terms.Timeout)
	}
	if s&Write != 0 {
		l.written = time.Time{}
		l.write.Refused(now, l.terms.Timeout)
	}
}

// Takes is how long a renewal takes, from its touch to its confirmation, by the
// slowest of the recent answers.
func (l *Lease) Takes() time.Duration {
	return l.sync.slow + l.vouched() + l.sync.slow + max(l.write.slow, l.sync.slow)
}

// vouched is how long it takes from the answer to a touch until its second voucher
// can be sent.
func (l *Lease) vouched() time.Duration {
	return max(l.terms.relay(), l.terms.pingDue()+l.sync.slow+l.terms.late())
}

// plan says what is worth sending.
type plan struct {
	pace  time.Duration // from the beginning of one renewal to that of the next
	merge time.Duration // by which one may be put off to begin with the voucher of another
	all   bool          // each touch is worth a renewal, as the lease is nearer its end than planned
}

func (l *Lease) plan(now time.Time, use Use) plan {
	timeout, spare := l.terms.Timeout, l.terms.Span()-l.Takes()
	longest, wanted := timeout/heldPace, spare-min(timeout/reserve+timeout/reserveMore, 3*spare/4)
	if use == Ready {
		longest, wanted = timeout/readyPace, max(wanted, spare-timeout/heldPace)
	}
	p := plan{pace: longest, merge: timeout / merge}
	if behind := l.write.slow - l.sync.slow; behind > timeout/slowWrite && use == Held {
		return l.planBehind(behind, p)
	}
	if wanted < longest {
		p = plan{pace: max(wanted, timeout/leastPace)}
	}
	if use == Held && l.proved.Sub(now) < spare-p.pace-timeout/merge {
		return plan{pace: timeout / leastPace, all: true}
	}
	return p
}

// inTheWay reports whether writes are so slow that the confirmation of one renewal
// is in the way of the next, unless they follow each other as planned.
func (l *Lease) inTheWay() bool { return l.write.slow-l.sync.slow > l.terms.Timeout/verySlowWrite }

// startAfresh makes a renewal begin with the next request. Renewals that began while
// nothing was held are not confirmed if that would be in the way of the new ones.
func (l *Lease) startAfresh() {
	if !l.inTheWay() {
		return
	}
	l.began, l.begun = time.Time{}, l.begun[:0]
	for i := range l.touches {
		l.touches[i].wanted = false
	}
}

// planBehind is the plan if a request behind a write waits for so long. A confirmation is
// sent when the second voucher is answered.
func (l *Lease) planBehind(behind time.Duration, p plan) plan {
	vouched, first := l.vouched(), l.terms.pingDue()
	switch {
	case vouched+behind <= p.pace, first == p.pace && vouched+behind <= 2*p.pace:
		return p // each renewal begins when the confirmation of one before is answered
	case behind <= first:
		// It begins with the second voucher of the one before, and has its first
		// voucher after that one's confirmation.
		return plan{pace: vouched, merge: p.merge}
	}
	return plan{pace: vouched + behind}
}

// Renew returns what to send now, which then counts as sent, and when to call Renew
// again. The zero time means not before Replied reports news.
func (l *Lease) Renew(now time.Time, use Use) (do Step, next time.Time) {
	if use == Unused || l.terms.Rule == ByServer || l.connect.IsZero() {
		return 0, time.Time{}
	}
	if use != Held {
		l.held = time.Time{}
	} else if l.held.IsZero() {
		l.held = now
		l.startAfresh()
	}
	p := l.plan(now, use)
	if use == Held && l.worthWriting(p) {
		if now.Before(l.write.until) {
			next = l.write.until
		} else {
			do |= Write
			l.written = l.touches[l.full-1].sent
		}
	}
	due := l.syncDue(p)
	if due.After(now) {
		return do, Sooner(next, due)
	}
	do |= Sync
	l.synced = now
	if now.Sub(l.began) >= p.pace-p.merge {
		l.began, l.begun = now, append(l.begun, now)
	}
	return do, Sooner(next, l.syncDue(p))
}

// worthWriting is whether there is a renewal to be confirmed.
func (l *Lease) worthWriting(p plan) bool {
	for i := l.full - 1; i >= 0 && l.touches[i].sent.After(l.written); i-- {
		if l.touches[i].wanted {
			return true
		}
	}
	return p.all && l.full > 0 && l.touches[l.full-1].sent.Sub(later(l.written, l.newest)) >= p.pace
}

// syncDue is when the next sync is due: as a voucher, or to begin a renewal.
func (l *Lease) syncDue(p plan) time.Time {
	var due time.Time
	for i := l.full; i < len(l.touches); i++ {
		t := l.firstDue
		if i < l.half {
			t = l.secondDue
		}
		at := t(i)
		switch {
		case !l.synced.Before(at): // on its way
		case l.touches[i].wanted:
			due = Sooner(due, at)
		case p.all:
			due = Sooner(due, later(at, l.synced.Add(l.terms.Timeout/leastSync)))
		}
	}
	begin := l.began.Add(p.pace)
	if due.IsZero() || due.Before(begin) || due.Sub(begin) > p.merge {
		due = Sooner(due, begin)
	}
	return later(due, l.sync.until)
}

// Enough reports whether enough of the lease is left to grant a hold. For the first hold
// on a connection the present renewal may come too late, although later ones will be in
// time. Enough is false until that renewal is done.
func (l *Lease) Enough(now time.Time) bool {
	until := l.Deadline()
	if until.IsZero() || until.Sub(now) < l.terms.Timeout/leastToGrant {
		return false
	}
	if l.terms.Rule == ByServer || !l.held.IsZero() && !l.newest.Before(l.held) {
		return true
	}
	steady := l.Takes()+l.terms.Timeout/leastToGrant <= l.terms.Span()
	return !steady || !l.expected(now).After(until.Add(-l.terms.Timeout/leastMargin))
}

// expected is when the next renewal will be confirmed, as far as can be seen.
func (l *Lease) expected(now time.Time) time.Time {
	if l.inTheWay() {
		return now.Add(l.Takes())
	}
	var due time.Time
	switch {
	case l.full > 0:
		return now.Add(l.write.slow)
	case l.half > 0:
		due = l.secondDue(0)
	default:
		touch := now.Add(l.sync.slow)
		if len(l.touches) > 0 {
			touch = l.touches[0].received
		}
		first := later(touch.Add(l.terms.pingDue()), now).Add(l.sync.slow)
		due = later(touch.Add(l.terms.relay()), first.Add(l.terms.late()))
	}
	return later(due, now).Add(l.sync.slow + l.write.slow)
}

// Short is the time from which on a hold is about to be lost.
func (l *Lease) Short() time.Time { return l.proved.Add(-l.terms.Timeout / nearlyOver) }

// Sooner is the earlier of two times of which a zero one is none.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
