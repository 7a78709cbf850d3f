package fleet

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// rule is how a client comes back after the end of its connection.
type rule struct {
	// first is the pause after the end, round the one before each further round of all
	// servers, from 1 on, and each the one before each dial of a round, from 0 on.
	first func(timeout time.Duration) span
	round func(n int, timeout time.Duration) span
	each  func(n int, timeout time.Duration) span
	// patient is whether a server that answers a step of a handshake has a third of the
	// timeout more, up to two thirds in all.
	patient bool
	// grows is whether each attempt but the first that was given up although the server had
	// begun to answer gives the next one half as much time more, up to three times as much.
	grows bool
}

// span is what a pause is drawn from.
type span struct{ least, most time.Duration }

// outage is what happens to three servers at 0: those that are dead refuse, and those that
// are closed take connections and end them.
type outage struct {
	dead, closed int           // how many
	until        time.Duration // 0 for ever
	cut          int           // how many servers' clients lose their connections
}

// costs are what a connection costs a server.
type costs struct {
	accept    time.Duration // taking it from the queue
	handshake time.Duration // all else, until the session is renewed
	steps     int           // of the handshake; the server does one step of each client in turn
}

// The servers' queue for connections that they have not accepted has 50 places, ZooKeeper's
// and Java's default. A kernel drops the first packet of a connection that finds it full.
// The client's kernel sends it again after 1, 3 and 7 seconds.
const (
	servers  = 3
	places   = 50
	oneWay   = 500 * time.Microsecond
	inStep   = 2 * time.Millisecond // within which all hear of the end
	attempts = 4
	mostTime = time.Minute // how long a run goes on at most
)

// result is what came of a run, in times since the servers could be reached.
type result struct {
	half, most time.Duration   // until half and 99 % of those that were cut are back
	lost       int             // sessions that ended
	dials      float64         // a second, until the servers could be reached or all were back
	back       []time.Duration // of each that was cut, since the outage began
}

// model is one run.
type model struct {
	rule    rule
	outage  outage
	costs   costs
	timeout time.Duration
	clients int
	random  *rand.Rand

	now     time.Duration
	events  events
	order   int
	waiting [servers]int           // in the queue for new connections
	accept  [servers]time.Duration // when the server has accepted all in it
	free    [servers]time.Duration // when the server has dealt with all that it has accepted
	dials   int
	back    []time.Duration
	lost    int
}

// client is one that was cut off.
type client struct {
	first  int           // the server that it tries first in each round
	tried  int           // in this round
	round  int           // so far
	ends   time.Duration // when the servers end its session
	dial   int           // which dial is under way
	begun  time.Duration // when it began
	until  time.Duration // when it is given up
	heard  bool          // the server has answered a step of this dial
	vain   int           // dials that were given up although the server had begun to answer
	isBack bool
}

func (m *model) at(t time.Duration, do func()) {
	m.order++
	heap.Push(&m.events, event{t, m.order, do})
}

// run lets the outage happen.
func (m *model) run() result {
	var all []*client
	for i := range m.clients {
		lost := i % servers
		if lost >= m.outage.cut {
			continue
		}
		// The server that was lost was tried last, and so comes last.
		c := &client{first: (lost + 1 + m.random.IntN(servers-1)) % servers}
		// A ping a third of the timeout ago at most is the last that the servers have heard.
		c.ends = m.timeout - m.upTo(m.timeout/3)
		if m.outage.dead == servers {
			c.ends = m.outage.until + m.timeout // servers that begin give each session its whole timeout
		}
		all = append(all, c)
		m.at(m.upTo(inStep)+m.draw(m.rule.first(m.timeout)), func() { m.try(c) })
	}
	for len(m.events) > 0 && len(m.back) < len(all) {
		e := heap.Pop(&m.events).(event)
		if e.at > mostTime {
			for _, c := range all { // who is not back by then never is
				if !c.isBack {
					m.back, m.lost = append(m.back, mostTime), m.lost+1
				}
			}
			break
		}
		m.now = e.at
		e.do()
	}
	slices.Sort(m.back)
	return result{
		half: m.back[len(m.back)/2] - m.outage.until, most: m.back[len(m.back)*99/100] - m.outage.until,
		lost: m.lost, dials: float64(m.dials) / max(m.outage.until, time.Second).Seconds(), back: m.back,
	}
}

func (m *model) draw(s span) time.Duration { return s.least + m.upTo(s.most-s.least+1) }

func (m *model) upTo(d time.Duration) time.Duration { return time.Duration(m.random.Int64N(int64(d))) }

// try dials the next server.
func (m *model) try(c *client) {
	if c.tried == servers {
		c.tried = 0
		c.round++
		m.at(m.now+m.draw(m.rule.round(c.round, m.timeout)), func() { m.try(c) })
		return
	}
	c.tried++
	server := (c.first + c.tried - 1) % servers
	m.at(m.now+m.draw(m.rule.each(c.round, m.timeout)), func() {
		if m.outage.until == 0 || m.now < m.outage.until {
			m.dials++
		}
		c.dial++
		c.heard, c.begun, c.until = false, m.now, m.now+m.each(c)
		m.wait(c, c.dial)
		m.arrive(c, c.dial, server, m.now, 1)
	})
}

// wait gives a dial up when its time is over.
func (m *model) wait(c *client, dial int) {
	m.at(c.until, func() {
		if c.dial == dial && m.now < c.until {
			m.wait(c, dial)
			return
		}
		if c.dial == dial && c.heard {
			c.vain++
		}
		m.failed(c, dial)
	})
}

// failed goes on with the next server, if it is this dial that the client waits for.
func (m *model) failed(c *client, dial int) {
	if !c.isBack && c.dial == dial {
		c.dial++
		m.try(c)
	}
}

// each is how long a server may take for a step.
func (m *model) each(c *client) time.Duration {
	each := m.timeout / 3
	if m.rule.grows {
		for range c.vain - 1 {
			each = min(each*3/2, m.timeout)
		}
	}
	return each
}

func (m *model) over() bool { return m.outage.until > 0 && m.now >= m.outage.until }

// arrive is a first packet that reaches the server.
func (m *model) arrive(c *client, dial, server int, begun time.Duration, attempt int) {
	switch {
	case c.dial != dial:
	case server < m.outage.dead && !m.over():
		m.at(m.now+2*oneWay, func() { m.failed(c, dial) })
	case m.waiting[server] > places:
		if attempt < attempts {
			m.at(begun+time.Second<<attempt-time.Second, func() { m.arrive(c, dial, server, begun, attempt+1) })
		}
	default:
		m.waiting[server]++
		m.accept[server] = max(m.accept[server], m.now) + m.costs.accept
		m.at(m.accept[server], func() { m.accepted(c, dial, server) })
	}
}

func (m *model) accepted(c *client, dial, server int) {
	m.waiting[server]--
	m.step(c, dial, server, 1)
}

// step is the nth of a handshake.
func (m *model) step(c *client, dial, server, n int) {
	m.free[server] = max(m.free[server], m.now) + m.costs.handshake/time.Duration(m.costs.steps)
	m.at(m.free[server]+2*oneWay, func() {
		switch {
		case c.dial != dial:
		case n < m.costs.steps:
			if m.rule.patient {
				c.heard, c.until = true, min(m.now+m.each(c), c.begun+2*m.each(c))
			}
			m.step(c, dial, server, n+1)
		case server < m.outage.dead+m.outage.closed && !m.over():
			m.failed(c, dial)
		default:
			c.isBack = true
			m.back = append(m.back, m.now)
			if m.now > c.ends {
				m.lost++
			}
		}
	})
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
