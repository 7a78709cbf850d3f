package monitorotel_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor/monitorotel"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// BenchmarkCost is what a tracer costs: a lock that is taken and given back, and one that
// is entered again. Spans are made and go nowhere. With ZK_CONNECT_STRING the server is another
// process, and is not among what is measured.
func BenchmarkCost(b *testing.B) {
	servers := os.Getenv("ZK_CONNECT_STRING")
	if servers == "" {
		servers = zktest.Start(b).ConnectString()
	}
	tracer := func(ratio float64) *monitorotel.Tracer {
		t, err := monitorotel.New(
			monitorotel.WithTracerProvider(trace.NewTracerProvider(trace.WithSampler(trace.TraceIDRatioBased(ratio)))),
			monitorotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))))
		require.NoError(b, err)
		return t
	}
	for _, which := range []struct {
		name   string
		change func(*framework.Config)
	}{
		{"no tracer", func(*framework.Config) {}},
		{"all sampled", func(cfg *framework.Config) { cfg.Tracer = tracer(1) }},
		{"none sampled", func(cfg *framework.Config) { cfg.Tracer = tracer(0) }},
	} {
		b.Run(which.name, func(b *testing.B) {
			cfg := framework.Config{ConnectString: servers}
			which.change(&cfg)
			c, err := framework.Connect(b.Context(), cfg)
			require.NoError(b, err)
			defer func() { require.NoError(b, c.Close()) }()
			lock := locks.NewInterProcessMutex(c, "/cost")
			b.Run("cycle", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					h, err := lock.Acquire(b.Context())
					require.NoError(b, err)
					require.NoError(b, h.Release())
				}
			})
			b.Run("reentry", func(b *testing.B) {
				outer, err := lock.Acquire(b.Context())
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					h, err := lock.Acquire(outer.Context())
					if err != nil {
						b.Fatal(err)
					}
					if err := h.Release(); err != nil {
						b.Fatal(err)
					}
				}
				require.NoError(b, outer.Release())
			})
		})
	}
}
