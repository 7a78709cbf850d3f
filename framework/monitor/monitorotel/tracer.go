// Package monitorotel makes OpenTelemetry spans and metrics of what a client does with
// locks. It is a module of its own, so that only programs that use it depend on
// OpenTelemetry.
package monitorotel

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/paddock-zk/paddock/framework/monitor/monitorotel"

// schema is of the semantic conventions that the names of attributes are from.
const schema = "https://opentelemetry.io/schemas/1.37.0"

// The attributes of spans and metrics. Metrics have those with few values: the kind, the
// outcome, the name of a call, and error.type.
const (
	KindKey        = attribute.Key("paddock.lock.kind")
	PathKey        = attribute.Key("paddock.lock.path")
	NodeKey        = attribute.Key("paddock.lock.node")
	TokenKey       = attribute.Key("paddock.lock.token")
	ParticipantKey = attribute.Key("paddock.lock.participant")
	AheadKey       = attribute.Key("paddock.lock.ahead")
	BehindKey      = attribute.Key("paddock.lock.behind")
	OutcomeKey     = attribute.Key("paddock.outcome")
	CallKey        = attribute.Key("paddock.call")
	CallPathKey    = attribute.Key("paddock.call.path")
	AttemptsKey    = attribute.Key("paddock.call.attempts")

	eventKey   = attribute.Key("paddock.event")
	messageKey = attribute.Key("paddock.error") // of a Retried, which is no exception
	stateKey   = attribute.Key("paddock.state")
	numberKey  = attribute.Key("paddock.number")

	// Those of the semantic conventions.
	operationKey = attribute.Key("db.operation.name")
	systemKey    = attribute.Key("db.system.name")
	errorKey     = attribute.Key("error.type")
)

// Tracer is a monitor.Tracer for framework.Config.Tracer. One may serve several clients.
// Make it with New. All methods may be called by many goroutines at once.
type Tracer struct {
	tracer              trace.Tracer
	meter               metric.Meter
	acquire, hold, call metric.Float64Histogram
	events              metric.Int64Counter

	mu      sync.Mutex // guards clients
	clients []*watched
}

type config struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
}

// Option changes a Tracer.
type Option func(*config)

// WithTracerProvider takes another provider of spans than the global one.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithMeterProvider takes another provider of metrics than the global one.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// seconds are the bounds of histograms: a free lock takes a round trip, and a contended
// one as long as others work.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// New makes a tracer. The error is that of a provider of metrics, or says that an option is nil.
func New(opts ...Option) (*Tracer, error) {
	c := config{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("monitorotel: option is nil")
		}
		opt(&c)
	}
	t := &Tracer{
		tracer: c.tracers.Tracer(Scope, trace.WithInstrumentationVersion(version()), trace.WithSchemaURL(schema)),
		meter:  c.meters.Meter(Scope, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(schema)),
	}
	for _, h := range []struct {
		to         *metric.Float64Histogram
		name, help string
	}{
		{&t.acquire, "paddock.lock.acquire.duration", "How long acquisitions took."},
		{&t.hold, "paddock.lock.hold.duration", "How long locks were held."},
		{&t.call, "paddock.call.duration", "How long calls of the client took."},
	} {
		var err error
		if *h.to, err = t.meter.Float64Histogram(h.name, metric.WithUnit("s"), metric.WithDescription(h.help), metric.WithExplicitBucketBoundaries(seconds...)); err != nil {
			return nil, fmt.Errorf("%s: %w", h.name, err)
		}
	}
	var err error
	if t.events, err = t.meter.Int64Counter("paddock.events", metric.WithUnit("{event}"), metric.WithDescription("What has happened to locks and to the connection.")); err != nil {
		return nil, fmt.Errorf("paddock.events: %w", err)
	}
	if err := t.observe(); err != nil {
		return nil, fmt.Errorf("gauges: %w", err)
	}
	return t, nil
}

// Watch adds gauges of a client: the lease that its session has left, what it holds and
// who waits. They are taken when metrics are collected, until stop is called. Of several
// clients in one state the least lease counts. Stop before you close the client.
func (t *Tracer) Watch(c *framework.Client) (stop func() error, err error) {
	entry := &watched{c}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients = append(t.clients, entry)
	return func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.clients = slices.DeleteFunc(t.clients, func(other *watched) bool { return other == entry })
		return nil
	}, nil
}

// watched is a client in one call of Watch.
type watched struct{ client *framework.Client }

// observe registers the gauges of all clients. One callback observes them all, since several
// that observe one gauge hide each other.
func (t *Tracer) observe() error {
	lease, err := t.meter.Float64ObservableGauge("paddock.session.lease", metric.WithUnit("s"), metric.WithDescription("How long the session lasts at least if no server answers any more; of several clients the least."))
	if err != nil {
		return err
	}
	holds, err := t.meter.Int64ObservableUpDownCounter("paddock.lock.holds", metric.WithUnit("{node}"), metric.WithDescription("Nodes that locks hold now."))
	if err != nil {
		return err
	}
	waiters, err := t.meter.Int64ObservableUpDownCounter("paddock.lock.waiters", metric.WithUnit("{goroutine}"), metric.WithDescription("Goroutines that wait for a lock now."))
	if err != nil {
		return err
	}
	entries, err := t.meter.Int64ObservableUpDownCounter("paddock.entries", metric.WithUnit("{entry}"), metric.WithDescription("What other recipes show, such as caches, by how it is."))
	if err != nil {
		return err
	}
	sums, err := t.meter.Int64ObservableUpDownCounter("paddock.entry.numbers", metric.WithUnit("1"), metric.WithDescription("Sums of the numbers that they show, such as the nodes of caches."))
	if err != nil {
		return err
	}
	_, err = t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		t.mu.Lock()
		clients := slices.Clone(t.clients)
		t.mu.Unlock()
		left := make(map[string]time.Duration)
		held, waiting := make(map[string]int64), make(map[string]int64)
		shown, added := make(map[[2]string]int64), make(map[[2]string]int64) // by kind, and state or name
		for _, w := range clients {
			stats := w.client.Stats()
			state := stats.State.String()
			if least, ok := left[state]; !ok || stats.LeaseLeft < least {
				left[state] = stats.LeaseLeft
			}
			for _, h := range w.client.Holds() {
				held[h.Lock.Kind]++
			}
			for _, waiter := range w.client.Waiters() {
				waiting[waiter.Lock.Kind]++
			}
			for _, e := range w.client.Entries() {
				shown[[2]string{e.Kind, e.State}]++
				for name, n := range e.Numbers {
					added[[2]string{e.Kind, name}] += n
				}
			}
		}
		for state, least := range left {
			o.ObserveFloat64(lease, least.Seconds(), metric.WithAttributes(stateKey.String(state)))
		}
		for kind, n := range held {
			o.ObserveInt64(holds, n, metric.WithAttributes(KindKey.String(kind)))
		}
		for kind, n := range waiting {
			o.ObserveInt64(waiters, n, metric.WithAttributes(KindKey.String(kind)))
		}
		for in, n := range shown {
			o.ObserveInt64(entries, n, metric.WithAttributes(KindKey.String(in[0]), stateKey.String(in[1])))
		}
		for of, sum := range added {
			o.ObserveInt64(sums, sum, metric.WithAttributes(KindKey.String(of[0]), numberKey.String(of[1])))
		}
		return nil
	}, lease, holds, waiters, entries, sums)
	return err
}

// version is that of this module in the program, "(devel)" in a checkout.
func version() string {
	const devel = "(devel)"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return devel
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == Scope && m.Version != "" {
			return m.Version
		}
	}
	return devel
}

// name is the name of a span.
func name(op monitor.Operation) string {
	if op.Kind == monitor.Call {
		return "zookeeper " + op.Name
	}
	return op.Kind.String() + " " + op.Lock.Kind
}

// Begin implements monitor.Tracer.
func (t *Tracer) Begin(ctx context.Context, op monitor.Operation) context.Context {
	kind := trace.SpanKindInternal
	if op.Kind == monitor.Call {
		kind = trace.SpanKindClient
	}
	ctx, _ = t.tracer.Start(ctx, name(op), trace.WithTimestamp(op.Began), trace.WithSpanKind(kind), trace.WithAttributes(begun(op)...))
	return ctx
}

// begun are the attributes that are known when an operation begins.
func begun(op monitor.Operation) []attribute.KeyValue {
	if op.Kind == monitor.Call {
		return []attribute.KeyValue{systemKey.String("zookeeper"), operationKey.String(op.Name), CallPathKey.String(op.Path)}
	}
	return lock(op.Lock)
}

func lock(l monitor.Lock) []attribute.KeyValue {
	all := []attribute.KeyValue{KindKey.String(l.Kind), PathKey.String(l.Path)}
	if l.Node != "" {
		all = append(all, NodeKey.String(l.Node), TokenKey.Int64(l.Token))
	}
	if l.Kind == monitor.Latch || l.Kind == monitor.Selector { // of a lock it is the application's own data
		all = append(all, ParticipantKey.String(l.Participant))
	}
	return all
}

// failed is whether an outcome is an error. It is no error that another owner has
// the lock.
func failed(o monitor.Outcome) bool {
	switch o {
	case monitor.Unreachable, monitor.Failed, monitor.Lost, monitor.Unknown:
		return true
	}
	return false
}

// End implements monitor.Tracer.
func (t *Tracer) End(ctx context.Context, op monitor.Operation, r monitor.Result) {
	span := trace.SpanFromContext(ctx)
	few := []attribute.KeyValue{OutcomeKey.String(string(r.Outcome))}
	if failed(r.Outcome) {
		few = append(few, errorKey.String(string(r.Outcome)))
		span.SetStatus(codes.Error, text(r.Err))
	}
	span.SetAttributes(few...)
	took := r.Ended.Sub(op.Began).Seconds()
	measured := context.WithoutCancel(ctx)
	switch op.Kind {
	case monitor.Acquire:
		if span.SetAttributes(lock(r.Lock)...); r.Waited {
			span.SetAttributes(AheadKey.Int(r.Ahead))
		}
		t.acquire.Record(measured, took, metric.WithAttributes(append(few, KindKey.String(op.Lock.Kind))...))
	case monitor.Hold:
		t.hold.Record(measured, took, metric.WithAttributes(append(few, KindKey.String(op.Lock.Kind))...))
	case monitor.Call:
		span.SetAttributes(AttemptsKey.Int(r.Attempts))
		t.call.Record(measured, took, metric.WithAttributes(append(few, CallKey.String(op.Name))...))
	}
	span.End(trace.WithTimestamp(r.Ended))
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Event implements monitor.Tracer.
func (t *Tracer) Event(ctx context.Context, e monitor.Event) {
	t.events.Add(context.WithoutCancel(ctx), 1, metric.WithAttributes(eventKey.String(e.Kind.String())))
	var more []attribute.KeyValue
	switch e.Kind {
	case monitor.Waiting:
		more = append(more, AheadKey.Int(e.Ahead), BehindKey.String(e.Behind))
	case monitor.Retried:
		more = append(more, messageKey.String(text(e.Err)))
	}
	trace.SpanFromContext(ctx).AddEvent(e.Kind.String(), trace.WithTimestamp(e.At), trace.WithAttributes(more...))
}
