package locks_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// lasts reports whether a hold is held for so long, and when it ended if not.
func lasts(h *locks.Hold, d time.Duration) (bool, time.Duration) {
	began := time.Now()
	select {
	case <-h.Context().Done():
		return false, time.Since(began)
	case <-time.After(d):
		return true, 0
	}
}

// Round trips that are long, and stay so, are no reason to lose a hold.
func TestHoldStandsLongRoundTrips(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		timeout, tick time.Duration
		parts         []float64
	}{
		{4 * time.Second, 0, []float64{100, 30, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7.5, 7}},
		{15 * time.Second, 0, []float64{100, 20, 16, 12, 10, 8, 7}},
		{4 * time.Second, 400 * time.Millisecond, []float64{20, 10, 7, 6, 5.5, 5}},
		{15 * time.Second, 1500 * time.Millisecond, []float64{20, 10, 7, 6, 5}},
	} {
		for i, part := range tc.parts {
			if !*everySweep && i%4 != 0 && i < len(tc.parts)-1 {
				continue
			}
			t.Run(fmt.Sprintf("T=%v tick=%v round trip of 1 in %v", tc.timeout, tc.tick, part), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					trip := time.Duration(float64(tc.timeout) / part)
					srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(tc.timeout/10), zktest.Latency(trip/2))
					c := kit.Connect(t, srv, kit.Within(tc.timeout, tc.tick), func(cfg *framework.Config) { cfg.ConnectTimeout = tc.timeout / 2 })
					h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
					require.NoError(t, err)
					before := srv.Requests()
					held, after := lasts(h, 10*tc.timeout)
					require.True(t, held, "lost after %v", after)
					writes := float64(srv.Requests()["multi"]-before["multi"]) / 10
					t.Logf("%.1f writes, %.1f syncs per session timeout", writes, float64(srv.Requests()["sync"]-before["sync"])/10)
					if part >= 30 {
						assert.LessOrEqual(t, writes, 6.0)
					}
					_ = h.Release()
				})
			})
		}
	}
}

// Writes are slow, as with slow disks, while all else is quick. A hold lasts, also
// that of a free lock which a client takes after a while.
func TestHoldStandsSlowWrites(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		timeout, tick time.Duration
		parts         []float64
	}{
		{4 * time.Second, 0, []float64{50, 20, 18, 16, 12, 10, 9, 8, 7, 6, 5, 4.5}},
		{15 * time.Second, 0, []float64{20, 16, 12, 8, 6, 5, 4.5}},
		{4 * time.Second, 400 * time.Millisecond, []float64{20, 10, 7, 6, 5, 4.5, 4, 3.5}},
		{15 * time.Second, 1500 * time.Millisecond, []float64{10, 6, 5, 4, 3.5}},
	} {
		for i, part := range tc.parts {
			for _, free := range []bool{false, true} {
				if free && part == 3.5 || !*everySweep && i%3 != 0 && i < len(tc.parts)-1 {
					continue
				}
				t.Run(fmt.Sprintf("T=%v tick=%v writes of 1 in %v free=%v", tc.timeout, tc.tick, part, free), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(tc.timeout/10), zktest.Latency(time.Millisecond))
						c := kit.Connect(t, srv, kit.Within(tc.timeout, tc.tick))
						m := locks.NewInterProcessMutex(c, "/l")
						h, err := m.Acquire(t.Context())
						require.NoError(t, err)
						if free {
							require.NoError(t, h.Release())
						}
						time.Sleep(2 * tc.timeout)
						for _, op := range []string{"multi", "create2", "delete"} {
							srv.On(zktest.Match{Op: op}, zktest.Delay(time.Duration(float64(tc.timeout)/part)))
						}
						if free {
							h, err = m.Acquire(t.Context())
							require.NoError(t, err)
						}
						held, after := lasts(h, 10*tc.timeout)
						require.True(t, held, "lost after %v", after)
						_ = h.Release()
					})
				})
			}
		}
	}
}

// A free lock is granted as long as a write comes at all.
func TestSlowWritesGrantAFreeLock(t *testing.T) {
	for _, part := range []float64{4, 3.5, 3} {
		t.Run(fmt.Sprint("writes of 1 in ", part), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(400*time.Millisecond), zktest.Latency(time.Millisecond))
				c := kit.Connect(t, srv, kit.Within(4*time.Second, 0))
				m := locks.NewInterProcessMutex(c, "/l")
				time.Sleep(8 * time.Second)
				for _, op := range []string{"multi", "create2", "createContainer"} {
					srv.On(zktest.Match{Op: op}, zktest.Delay(time.Duration(4*float64(time.Second)/part)))
				}
				began := time.Now()
				h, err := m.Acquire(t.Context())
				require.NoError(t, err)
				granted := time.Since(began)
				held, after := lasts(h, 40*time.Second)
				t.Logf("granted after %v, held %v, lost after %v", granted, held, after)
				_ = h.Release()
			})
		})
	}
}

// The servers stand still once, at any moment.
func TestHoldStandsAPause(t *testing.T) {
	t.Parallel()
	const timeout, phases = 15 * time.Second, 60
	for pause, stands := range map[float64]bool{0.2: true, 0.3: true, 0.35: true, 0.4: false} {
		lost, tried := 0, 0
		for phase := range kit.Moments(t, phases, *everySweep) {
			tried++
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory(), zktest.Tick(timeout/10), zktest.Latency(time.Millisecond))
				c := kit.Connect(t, srv, kit.Within(timeout, 0))
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(2*timeout + timeout*time.Duration(phase)/time.Duration(phases))
				srv.Freeze()
				time.Sleep(time.Duration(pause * float64(timeout)))
				srv.Thaw()
				time.Sleep(2 * timeout)
				if h.Err() != nil {
					lost++
				}
				_ = h.Release()
			})
		}
		t.Logf("a pause of %v T: %d of %d lost", pause, lost, tried)
		if stands {
			assert.Zero(t, lost, "a pause of %v T", pause)
		}
	}
}

// The ensemble elects another leader: all members close their connections, and
// serve nobody for a while.
func TestHoldStandsAnElection(t *testing.T) {
	t.Parallel()
	phases := 8
	if *everySweep {
		phases = 20
	}
	for _, timeout := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 15 * time.Second} {
		lost := 0
		for phase := range phases {
			synctest.Test(t, func(t *testing.T) {
				cl := zktest.StartCluster(t, 3, zktest.InMemory(), zktest.Tick(timeout/10), zktest.SessionTimeouts(time.Second, time.Minute), zktest.Latency(time.Millisecond))
				c := kit.Connect(t, &cl.Server, kit.Within(timeout, 0))
				h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
				require.NoError(t, err)
				time.Sleep(2*timeout + timeout*time.Duration(phase)/time.Duration(phases))
				cl.Elect((cl.Leader() + 1) % 3)
				time.Sleep(3 * timeout)
				if h.Err() != nil {
					lost++
				}
				_ = h.Release()
			})
		}
		t.Logf("an election of 350 ms, session timeout %v: %d of %d lost", timeout, lost, phases)
		switch {
		case timeout >= 4*time.Second:
			assert.Zero(t, lost, "session timeout %v", timeout)
		case timeout >= 2*time.Second: // one in 400 ends a hold: those after which the client is back 0.37 T later
			assert.Less(t, lost, phases/4, "session timeout %v", timeout)
		}
	}
}
