package monitorotel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor/monitorotel"
	"github.com/paddock-zk/paddock/recipes/cache"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpansAndMetrics(t *testing.T) {
	srv := zktest.Start(t)
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	tracers, meters := trace.NewTracerProvider(trace.WithSpanProcessor(spans)), metric.NewMeterProvider(metric.WithReader(reader))
	tracer, err := monitorotel.New(monitorotel.WithTracerProvider(tracers), monitorotel.WithMeterProvider(meters))
	require.NoError(t, err)
	c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), Tracer: tracer})
	require.NoError(t, err)
	stop, err := tracer.Watch(c)
	require.NoError(t, err)

	ctx, outer := tracers.Tracer("app").Start(t.Context(), "order 7")
	hold, err := locks.NewInterProcessMutex(c, "/orders/7").Acquire(ctx)
	require.NoError(t, err)
	_, _, err = c.Get(hold.Context(), "/none")
	require.ErrorIs(t, err, framework.ErrNoNode)
	_, err = locks.NewInterProcessMutex(c, "/orders/7").TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrNotAcquired)
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	require.NoError(t, hold.Release())
	outer.End()

	ended := make(map[string]trace.ReadOnlySpan)
	var outcomes []string
	for _, s := range spans.Ended() {
		if _, again := ended[s.Name()]; !again {
			ended[s.Name()] = s
		}
		for _, a := range s.Attributes() {
			if a.Key == monitorotel.OutcomeKey {
				outcomes = append(outcomes, s.Name()+": "+a.Value.AsString())
			}
		}
	}
	assert.Equal(t, []string{"acquire mutex: acquired", "zookeeper get: failed", "acquire mutex: busy", "release mutex: released", "hold mutex: released"}, outcomes)
	id := outer.SpanContext().SpanID()
	assert.Equal(t, id, ended["acquire mutex"].Parent().SpanID())
	assert.Equal(t, id, ended["hold mutex"].Parent().SpanID())
	assert.Equal(t, ended["hold mutex"].SpanContext().SpanID(), ended["zookeeper get"].Parent().SpanID(), "what is done under a lock is below its hold")
	assert.Equal(t, codes.Error, ended["zookeeper get"].Status().Code)
	assert.Contains(t, ended["hold mutex"].Attributes(), monitorotel.TokenKey.Int64(tokenOf(ended["hold mutex"])))

	found := make(map[string]bool)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = true
		}
	}
	for _, name := range []string{"paddock.lock.acquire.duration", "paddock.call.duration", "paddock.events", "paddock.session.lease", "paddock.lock.holds"} {
		assert.True(t, found[name], name)
	}
	require.NoError(t, stop())
	require.NoError(t, c.Close())
	require.NoError(t, tracers.Shutdown(t.Context()))
	require.NoError(t, meters.Shutdown(t.Context()))
}

// tokenOf is the token of a span, which is there.
func tokenOf(s trace.ReadOnlySpan) int64 {
	for _, a := range s.Attributes() {
		if a.Key == monitorotel.TokenKey {
			return a.Value.AsInt64()
		}
	}
	return -1
}

// What recipes show is counted by kind and state, and their numbers are added up.
func TestEntries(t *testing.T) {
	srv := zktest.Start(t)
	reader := metric.NewManualReader()
	tracer, err := monitorotel.New(monitorotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	require.NoError(t, err)
	c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	_, err = tracer.Watch(c)
	require.NoError(t, err)
	copied, err := cache.Start(c, "/", cache.Bytes)
	require.NoError(t, err)
	defer copied.Close()
	_, err = copied.Ready(t.Context())
	require.NoError(t, err)
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	sums := make(map[string]int64)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, point := range sum.DataPoints {
					name := m.Name
					if number, ok := point.Attributes.Value("paddock.number"); ok {
						if name += "/" + number.AsString(); point.Value == 0 || number.AsString() == "bytes" {
							continue
						}
					}
					sums[name] += point.Value
				}
			}
		}
	}
	assert.Equal(t, map[string]int64{"paddock.entries": 1, "paddock.entry.numbers/nodes": 1}, sums)
}

func TestOptionIsNil(t *testing.T) {
	_, err := monitorotel.New(nil)
	assert.EqualError(t, err, "monitorotel: option is nil")
}

// Of two clients of one tracer the shorter lease is seen, and what both hold.
func TestTwoClients(t *testing.T) {
	srv := zktest.Start(t)
	reader := metric.NewManualReader()
	tracer, err := monitorotel.New(monitorotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	require.NoError(t, err)
	var stops []func() error
	for i, timeout := range []time.Duration{4 * time.Second, 40 * time.Second} {
		c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), Tracer: tracer, SessionTimeout: timeout})
		require.NoError(t, err)
		defer func() { assert.NoError(t, c.Close()) }()
		stop, err := tracer.Watch(c)
		require.NoError(t, err)
		stops = append(stops, stop)
		_, err = locks.NewInterProcessMutex(c, fmt.Sprint("/l", i)).Acquire(t.Context())
		require.NoError(t, err)
	}
	// gauges are the least lease and the number of holds, each -1 if there is none.
	gauges := func() (lease float64, holds int64) {
		var data metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &data))
		lease, holds = -1, -1
		for _, scope := range data.ScopeMetrics {
			assert.NotEmpty(t, scope.Scope.Version)
			assert.NotEmpty(t, scope.Scope.SchemaURL)
			for _, m := range scope.Metrics {
				switch d := m.Data.(type) {
				case metricdata.Gauge[float64]:
					require.Len(t, d.DataPoints, 1)
					lease = d.DataPoints[0].Value
				case metricdata.Sum[int64]:
					if m.Name == "paddock.lock.holds" {
						require.Len(t, d.DataPoints, 1)
						holds = d.DataPoints[0].Value
					}
				}
			}
		}
		return lease, holds
	}
	lease, holds := gauges()
	assert.LessOrEqual(t, lease, 4.)
	assert.EqualValues(t, 2, holds)
	require.NoError(t, stops[0]())
	require.NoError(t, stops[0](), "twice")
	lease, holds = gauges()
	assert.Greater(t, lease, 4.)
	assert.EqualValues(t, 1, holds)
	require.NoError(t, stops[1]())
	lease, holds = gauges()
	assert.InDelta(t, -1, lease, 0)
	assert.EqualValues(t, -1, holds)
}
