// Package monitorprom makes Prometheus metrics of what a client does with locks. It is a
// module of its own, so that only programs that use it depend on Prometheus.
package monitorprom

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/listeners"
)

// Metrics is a monitor.Tracer for framework.Config.Tracer, and a prometheus.Collector. One
// may serve several clients. Make it with New. All methods may be called by many
// goroutines at once.
type Metrics struct {
	monitor.Nothing
	label func(monitor.Lock) string

	acquire, hold, call *prometheus.HistogramVec
	events              *prometheus.CounterVec
	gauges              []*prometheus.Desc

	begun sync.Map // series that exist with all their outcomes

	mu      sync.Mutex // guards clients
	clients []*framework.Client
}

// Option changes Metrics.
type Option func(*Metrics)

// Label gives metrics of locks a label "lock", which fn makes of each lock. It does so for
// what other recipes show, as a monitor.Lock with its kind and path. The label must have
// few values: a path with a number of an order in it makes series for each order. Bytes
// that are not UTF-8 are replaced. By default it is empty. Label panics if fn is nil.
func Label(fn func(monitor.Lock) string) Option {
	if fn == nil {
		panic("monitorprom: Label without a function")
	}
	return func(m *Metrics) { m.label = fn }
}

const namespace = "paddock"

// waits are the bounds of buckets, in seconds: a free lock takes a round trip, and a
// contended one as long as others work.
var waits = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

const (
	connected = iota
	leaseLeft
	timeout
	holds
	waiters
	oldestHold
	oldestWait
	entries
	entryAge
	entryNumbers
	certificateLeft
)

// New makes metrics. They are not registered yet. It panics if an option is nil.
func New(opts ...Option) *Metrics {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: waits}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	m := &Metrics{
		label:   func(monitor.Lock) string { return "" },
		acquire: histogram("acquire_seconds", "How long acquisitions took, by how they ended.", "kind", "lock", "outcome"),
		hold:    histogram("hold_seconds", "How long locks were held, by how that ended.", "kind", "lock", "outcome"),
		call:    histogram("call_seconds", "How long calls of the client took, by how they ended.", "call", "outcome"),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "events_total", Help: "What has happened: waiting, yielded, retried, uncertain, confirmed, connection, lease renewed.",
		}, []string{"event"}),
		gauges: []*prometheus.Desc{
			connected:  gauge("connected", "Clients that are connected."),
			leaseLeft:  gauge("session_lease_seconds", "How long the session lasts at least if no server answers any more; of several clients the least."),
			timeout:    gauge("session_timeout_seconds", "The session timeout that the servers granted; of several clients the least."),
			holds:      gauge("holds", "Nodes that locks hold now.", "kind", "lock"),
			waiters:    gauge("waiters", "Goroutines that wait for a lock now.", "kind", "lock"),
			oldestHold: gauge("oldest_hold_seconds", "How long the oldest of them is held.", "kind", "lock"),
			oldestWait: gauge("oldest_wait_seconds", "How long the oldest of them has waited. Candidates of elections do not count.", "kind", "lock"),

			entries:      gauge("entries", "What other recipes show, such as caches, by how it is.", "kind", "state", "lock"),
			entryAge:     gauge("entry_age_seconds", "How long the oldest of them is in that state.", "kind", "state", "lock"),
			entryNumbers: gauge("entry_numbers", "Sums of the numbers that they show, such as the nodes of caches.", "kind", "number", "lock"),

			certificateLeft: gauge("certificate_left_seconds", "How long the certificate that clients show lasts still; of several clients the least."),
		},
	}
	for _, opt := range opts {
		if opt == nil {
			panic("monitorprom: option is nil")
		}
		opt(m)
	}
	label := m.label
	m.label = func(l monitor.Lock) string { return valid(label(l)) }
	for kind := monitor.Waiting; kind <= monitor.LeaseRenewed; kind++ {
		m.events.WithLabelValues(kind.String())
	}
	return m
}

// Watch adds gauges of a client: its connection, what it holds, who waits, and what other recipes show. They are
// taken when the metrics are collected, until stop is called. Stop before you close the
// client, since a closed one counts as one without a connection.
func (m *Metrics) Watch(c *framework.Client) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients = append(m.clients, c)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for i, other := range m.clients {
			if other == c {
				m.clients = append(m.clients[:i:i], m.clients[i+1:]...)
				return
			}
		}
	}
}

// Begin implements monitor.Tracer. It makes the series of all outcomes, with 0, so that the
// first lost lock of a process is an increase. The rules of alerts miss it otherwise.
func (m *Metrics) Begin(ctx context.Context, op monitor.Operation) context.Context {
	switch op.Kind {
	case monitor.Acquire:
		m.begin(m.acquire, acquireOutcomes, op.Lock.Kind, m.label(op.Lock))
	case monitor.Hold:
		m.begin(m.hold, holdOutcomes, op.Lock.Kind, m.label(op.Lock))
	case monitor.Call:
		m.begin(m.call, callOutcomes, op.Name)
	}
	return ctx
}

// The outcomes that the operations of a histogram may have.
var (
	acquireOutcomes = []monitor.Outcome{
		monitor.Acquired, monitor.TakenOver, monitor.Reentered, monitor.Busy, monitor.Unreachable, monitor.Canceled, monitor.Failed,
	}
	holdOutcomes = []monitor.Outcome{monitor.Released, monitor.HandedOver, monitor.Lost}
	callOutcomes = []monitor.Outcome{monitor.Done, monitor.Failed, monitor.Unknown, monitor.Canceled, monitor.Unreachable}
)

// begin makes the series of a histogram with these labels, once.
func (m *Metrics) begin(of *prometheus.HistogramVec, outcomes []monitor.Outcome, labels ...string) {
	type key struct {
		of     *prometheus.HistogramVec
		labels [2]string
	}
	k := key{of: of}
	copy(k.labels[:], labels)
	if _, done := m.begun.LoadOrStore(k, true); done {
		return
	}
	for _, o := range outcomes {
		of.WithLabelValues(append(labels[:len(labels):len(labels)], string(o))...)
	}
}

// End implements monitor.Tracer.
func (m *Metrics) End(_ context.Context, op monitor.Operation, r monitor.Result) {
	took := r.Ended.Sub(op.Began).Seconds()
	switch op.Kind {
	case monitor.Acquire:
		m.acquire.WithLabelValues(op.Lock.Kind, m.label(op.Lock), string(r.Outcome)).Observe(took)
	case monitor.Hold:
		m.hold.WithLabelValues(op.Lock.Kind, m.label(op.Lock), string(r.Outcome)).Observe(took)
	case monitor.Call:
		m.call.WithLabelValues(op.Name, string(r.Outcome)).Observe(took)
	}
}

// Event implements monitor.Tracer.
func (m *Metrics) Event(_ context.Context, e monitor.Event) {
	m.events.WithLabelValues(e.Kind.String()).Inc()
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
	for _, g := range m.gauges {
		ch <- g
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.acquire, m.hold, m.call, m.events}
}

// series is which locks are counted together.
type series struct{ kind, lock string }

// valid makes a label of a text. Otherwise no metric would be served.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// entry is which entries are counted together: those in a state, or with a number.
type entry struct{ kind, what, lock string }

// count is how many there are, and since when the oldest.
type count struct {
	n     int
	since time.Time
}

func (c *count) add(since time.Time) {
	c.n++
	if !since.IsZero() && (c.since.IsZero() || since.Before(c.since)) {
		c.since = since
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
	m.mu.Lock()
	clients := append([]*framework.Client(nil), m.clients...)
	m.mu.Unlock()
	if len(clients) == 0 {
		return
	}
	up := 0
	var ending time.Time
	least := monitor.Stats{LeaseLeft: 1 << 62, Timeout: 1 << 62}
	held, waiting := make(map[series]*count), make(map[series]*count)
	shown, sums := make(map[entry]*count), make(map[entry]int64)
	now := time.Now()
	for _, c := range clients {
		s := c.Stats()
		if s.State == listeners.Connected || s.State == listeners.Reconnected {
			up++
		}
		least.LeaseLeft, least.Timeout = min(least.LeaseLeft, s.LeaseLeft), min(least.Timeout, s.Timeout)
		if own := s.Certificate; own != nil && (ending.IsZero() || own.Until.Before(ending)) {
			ending = own.Until
		}
		for _, h := range c.Holds() {
			m.counted(held, h.Lock).add(h.Since)
		}
		for _, w := range c.Waiters() {
			m.counted(waiting, w.Lock).add(w.Since)
		}
		for _, e := range c.Entries() {
			in := entry{valid(e.Kind), valid(e.State), m.label(monitor.Lock{Kind: e.Kind, Path: e.Path})}
			if shown[in] == nil {
				shown[in] = new(count)
			}
			shown[in].add(e.Since)
			for name, n := range e.Numbers {
				sums[entry{in.kind, valid(name), in.lock}] += n
			}
		}
	}
	gauge := func(which int, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(m.gauges[which], prometheus.GaugeValue, v, labels...)
	}
	gauge(connected, float64(up))
	gauge(leaseLeft, least.LeaseLeft.Seconds())
	gauge(timeout, least.Timeout.Seconds())
	if !ending.IsZero() {
		gauge(certificateLeft, ending.Sub(now).Seconds())
	}
	for e, c := range shown {
		gauge(entries, float64(c.n), e.kind, e.what, e.lock)
		if !c.since.IsZero() {
			gauge(entryAge, now.Sub(c.since).Seconds(), e.kind, e.what, e.lock)
		}
	}
	for e, sum := range sums {
		gauge(entryNumbers, float64(sum), e.kind, e.what, e.lock)
	}
	for s, c := range held {
		gauge(holds, float64(c.n), s.kind, s.lock)
		gauge(oldestHold, now.Sub(c.since).Seconds(), s.kind, s.lock)
	}
	for s, c := range waiting {
		gauge(waiters, float64(c.n), s.kind, s.lock)
		if s.kind != monitor.Latch && s.kind != monitor.Selector { // to wait is what candidates are for
			gauge(oldestWait, now.Sub(c.since).Seconds(), s.kind, s.lock)
		}
	}
}

// counted is where a lock is counted.
func (m *Metrics) counted(in map[series]*count, lock monitor.Lock) *count {
	s := series{lock.Kind, m.label(lock)}
	if in[s] == nil {
		in[s] = new(count)
	}
	return in[s]
}
