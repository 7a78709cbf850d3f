package monitorprom_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/framework/monitor/monitorprom"
	"github.com/paddock-zk/paddock/recipes/cache"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, srv *zktest.Server, m *monitorprom.Metrics) *framework.Client {
	t.Helper()
	c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), Tracer: m})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// values are the samples of a metric that is no histogram, or how many observations each
// series of a histogram has, by their labels.
func values(t *testing.T, r *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	all := make(map[string]float64)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			all[strings.Join(labels, " ")] = v
		}
	}
	return all
}

// happened is values without those that are 0.
func happened(t *testing.T, r *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	all := values(t, r, name)
	maps.DeleteFunc(all, func(_ string, v float64) bool { return v == 0 })
	return all
}

func TestMetrics(t *testing.T) {
	srv := zktest.Start(t)
	m := monitorprom.New(monitorprom.Label(func(l monitor.Lock) string { return strings.Split(l.Path, "/")[1] }))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	c := connect(t, srv, m)
	assert.Empty(t, values(t, registry, "paddock_connected"), "nobody is watched")
	stop := m.Watch(c)
	lock := locks.NewInterProcessMutex(c, "/orders/7")
	hold, err := lock.Acquire(t.Context())
	require.NoError(t, err)
	other := connect(t, srv, monitorprom.New())
	_, err = locks.NewInterProcessMutex(other, "/orders/7").TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrNotAcquired)
	_, err = locks.NewInterProcessMutex(c, "/orders/7").TryAcquire(t.Context(), 0)
	require.ErrorIs(t, err, locks.ErrNotAcquired)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() {
		_, err := lock.Acquire(ctx)
		waited <- err
	}()
	require.Eventually(t, func() bool { return len(c.Waiters()) == 1 }, 5*time.Second, time.Millisecond)

	assert.Equal(t, map[string]float64{"": 1}, values(t, registry, "paddock_connected"))
	assert.Equal(t, map[string]float64{"mutex orders": 1}, values(t, registry, "paddock_holds"))
	assert.Equal(t, map[string]float64{"mutex orders": 1}, values(t, registry, "paddock_waiters"))
	assert.Positive(t, values(t, registry, "paddock_oldest_wait_seconds")["mutex orders"])
	assert.Positive(t, values(t, registry, "paddock_oldest_hold_seconds")["mutex orders"])
	assert.InDelta(t, c.SessionTimeout().Seconds(), values(t, registry, "paddock_session_lease_seconds")[""], 5)
	cancel()
	require.ErrorIs(t, <-waited, context.Canceled)
	require.NoError(t, hold.Release())
	_, _, err = c.Get(t.Context(), "/none")
	require.ErrorIs(t, err, framework.ErrNoNode)
	assert.Equal(t, map[string]float64{"mutex orders acquired": 1, "mutex orders busy": 1, "mutex orders canceled": 1}, happened(t, registry, "paddock_acquire_seconds"))
	assert.Equal(t, map[string]float64{"mutex orders released": 1}, happened(t, registry, "paddock_hold_seconds"))
	assert.Equal(t, map[string]float64{"get failed": 1}, happened(t, registry, "paddock_call_seconds"))
	assert.GreaterOrEqual(t, values(t, registry, "paddock_events_total")["connection"], 1.)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
	stop()
	assert.Empty(t, values(t, registry, "paddock_connected"))
}

// Caches and what else recipes show is counted by kind and state.
func TestEntries(t *testing.T) {
	srv := zktest.Start(t)
	m := monitorprom.New(monitorprom.Label(func(l monitor.Lock) string { return l.Kind + strings.Split(l.Path, "/")[1] }))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	c := connect(t, srv, m)
	defer m.Watch(c)()
	assert.Empty(t, values(t, registry, "paddock_entries"))
	require.NoError(t, c.EnsurePath(t.Context(), "/app/a/b"))
	for _, path := range []string{"/app", "/app/a"} {
		copied, err := cache.Start(c, path, cache.Bytes)
		require.NoError(t, err)
		defer copied.Close()
		_, err = copied.Ready(t.Context())
		require.NoError(t, err)
		require.Eventually(t, func() bool { return copied.Status().Current }, 5*time.Second, time.Millisecond)
	}
	_, err := c.Show("/party", func() monitor.Entry {
		return monitor.Entry{Kind: "party\xff", State: "full\xff", Since: time.Now().Add(-time.Hour), Numbers: map[string]int64{"guests\xff": 71}}
	})
	require.NoError(t, err)
	_, err = c.Show("/party/b", func() monitor.Entry { return monitor.Entry{Kind: "party\xff", State: "full\xff"} })
	require.NoError(t, err)
	got := values(t, registry, "paddock_entries")
	assert.Equal(t, map[string]float64{"cache cacheapp current": 2, "party\ufffd party\ufffdparty full\ufffd": 2}, got)
	got = values(t, registry, "paddock_entry_numbers")
	assert.Positive(t, got["cache cacheapp bytes"])
	delete(got, "cache cacheapp bytes")
	assert.Equal(t, map[string]float64{
		"cache cacheapp nodes": 5, "cache cacheapp holes": 0, "cache cacheapp gaps": 0, "cache cacheapp readers": 0, "cache cacheapp readers behind": 0,
		"party\ufffd party\ufffdparty guests\ufffd": 71,
	}, got)
	assert.InDelta(t, 3600, values(t, registry, "paddock_entry_age_seconds")["party\ufffd party\ufffdparty full\ufffd"], 10)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// Each query of the dashboard asks for metrics that there are, and each metric is shown.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	described := make(chan *prometheus.Desc, 100)
	monitorprom.New().Describe(described)
	close(described)
	known := make(map[string]bool)
	for d := range described {
		known[regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(d.String())[1]] = false
	}
	ids := make(map[int]bool)
	for _, p := range board.Panels {
		assert.False(t, ids[p.ID], "panel %d twice", p.ID)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			names := regexp.MustCompile(`paddock_\w+`).FindAllString(target.Expr, -1)
			require.NotEmpty(t, names, target.Expr)
			for _, name := range names {
				name = strings.TrimSuffix(strings.TrimSuffix(name, "_count"), "_bucket")
				assert.Contains(t, known, name)
				known[name] = true
			}
			assert.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), target.Expr)
		}
	}
	for name, shown := range known {
		assert.True(t, shown, "%s is on no panel", name)
	}
}

// A candidate waits for as long as another leads, which is no reason for an alarm.
func TestCandidatesThatWait(t *testing.T) {
	srv := zktest.Start(t)
	m := monitorprom.New()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	c := connect(t, srv, m)
	defer m.Watch(c)()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 2)
	for _, await := range []func(context.Context) (*leader.Term, error){leader.NewLatch(c, "/latch").Await, leader.NewSelector(c, "/selector").Await} {
		term, err := await(t.Context())
		require.NoError(t, err)
		defer func() { assert.NoError(t, term.Release()) }()
		go func() {
			_, err := await(ctx)
			left <- err
		}()
	}
	require.Eventually(t, func() bool { return len(c.Waiters()) == 2 }, 5*time.Second, time.Millisecond)
	assert.Len(t, values(t, registry, "paddock_waiters"), 2)
	assert.Len(t, values(t, registry, "paddock_oldest_hold_seconds"), 2)
	assert.Empty(t, values(t, registry, "paddock_oldest_wait_seconds"))
	cancel()
	for range 2 {
		require.ErrorIs(t, <-left, context.Canceled)
	}
}

// An alert on an increase misses the first event of a series that was not there before.
func TestFirstLossIsAnIncrease(t *testing.T) {
	srv := zktest.Start(t)
	m := monitorprom.New(monitorprom.Label(func(l monitor.Lock) string { return l.Path[:len("/orders")] }))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	events := values(t, registry, "paddock_events_total")
	for kind := monitor.Waiting; kind.String() != "unknown"; kind++ {
		assert.Contains(t, events, kind.String(), "before anything has happened")
	}
	c := connect(t, srv, m)
	hold, err := locks.NewInterProcessMutex(c, "/orders/7").Acquire(t.Context())
	require.NoError(t, err)
	_, err = c.Create(t.Context(), "/x", nil, framework.Persistent)
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"mutex /orders released": 0, "mutex /orders handed over": 0, "mutex /orders lost": 0},
		values(t, registry, "paddock_hold_seconds"))
	assert.Equal(t, map[string]float64{
		"mutex /orders acquired": 1, "mutex /orders taken over": 0, "mutex /orders reentered": 0, "mutex /orders busy": 0,
		"mutex /orders unreachable": 0, "mutex /orders canceled": 0, "mutex /orders failed": 0,
	}, values(t, registry, "paddock_acquire_seconds"))
	assert.Equal(t, map[string]float64{"create done": 1, "create failed": 0, "create unknown": 0, "create canceled": 0, "create unreachable": 0},
		values(t, registry, "paddock_call_seconds"))
	require.NoError(t, srv.ExpireSession(c.SessionID()))
	<-hold.Context().Done()
	assert.Eventually(t, func() bool { return values(t, registry, "paddock_hold_seconds")["mutex /orders lost"] == 1 }, 10*time.Second, 10*time.Millisecond)
	assert.Len(t, values(t, registry, "paddock_hold_seconds"), 3, "no outcome but these")
}

// A label of any bytes costs no other metric.
func TestLabelThatIsNoText(t *testing.T) {
	srv := zktest.Start(t)
	m := monitorprom.New(monitorprom.Label(func(monitor.Lock) string { return "a\xff" }))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	c := connect(t, srv, m)
	defer m.Watch(c)()
	hold, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"mutex a\uFFFD": 1}, values(t, registry, "paddock_holds"))
	require.NoError(t, hold.Release())
}

// It would panic where a lock is acquired.
func TestOptionIsNil(t *testing.T) {
	assert.PanicsWithValue(t, "monitorprom: option is nil", func() { monitorprom.New(nil) })
	assert.PanicsWithValue(t, "monitorprom: Label without a function", func() { monitorprom.Label(nil) })
}

// Clients without a certificate give no sample, so that nobody is alarmed.
func TestCertificateLeft(t *testing.T) {
	site := httptest.NewTLSServer(nil)
	cert, leaf := site.TLS.Certificates[0], site.Certificate()
	site.Close()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	files := framework.TLSFiles{CA: filepath.Join(dir, "cert"), Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	require.NoError(t, os.WriteFile(files.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}), 0o600))
	require.NoError(t, os.WriteFile(files.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))

	m := monitorprom.New()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	m.Watch(connect(t, zktest.Start(t), m))
	assert.Empty(t, values(t, registry, "paddock_certificate_left_seconds"))

	srv := zktest.Start(t, zktest.TLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}))
	c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), TLSFiles: files})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	m.Watch(c)
	assert.InDelta(t, time.Until(leaf.NotAfter).Seconds(), values(t, registry, "paddock_certificate_left_seconds")[""], 60)
}
