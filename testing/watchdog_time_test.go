package zktest_test

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// wrongTests hang, or cannot work, in another process. Each has what its output must contain.
var wrongTests = []struct {
	name string
	test func(t *testing.T)
	says []string
}{
	{"forgotten Thaw", inBubble(func(t *testing.T, srv *zktest.Server) {
		conn := connected(t, srv)
		srv.Freeze()
		create(conn)
	}), []string{"panic: zktest: TestWhatWrongTestsPrint/forgotten_Thaw hangs: no client has", "The server is frozen: nobody has called Thaw.", "watchdog_time_test.go:", "zk.(*Conn).Create, select"}},
	{"forgotten Restart", inBubble(func(t *testing.T, srv *zktest.Server) {
		conn := connected(t, srv)
		assert.NoError(t, srv.Stop())
		create(conn)
	}), []string{"The server is stopped: nobody has called Restart."}},
	{"forgotten Unstall", inBubble(func(t *testing.T, srv *zktest.Server) {
		conn := connected(t, srv)
		srv.Stall(0, zktest.BothWays)
		create(conn)
	}), []string{"has stalled connections: nobody has called Unstall."}},
	{"forgotten Heal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cluster := zktest.StartCluster(t, 3, zktest.InMemory())
			conn := connected(t, cluster.Member(0))
			cluster.Partition([]int{0}, []int{1}, []int{2})
			create(conn)
		})
	}, []string{"Members are partitioned: nobody has called Heal.", "Member 0 sees no majority."}},
	{"a lock that the test has itself", inBubble(func(t *testing.T, srv *zktest.Server) {
		conn := connected(t, srv)
		assert.NoError(t, zk.NewLock(conn, "/l", worldACL).Lock())
		_ = zk.NewLock(conn, "/l", worldACL).Lock()
	}), []string{"-lock-0000000000 (data), its own", "zk.(*Lock).Lock", "getChildren2 /l"}},
	{"a lock that another session keeps", inBubble(func(t *testing.T, srv *zktest.Server) {
		assert.NoError(t, zk.NewLock(connected(t, srv), "/l", worldACL).Lock())
		_ = zk.NewLock(connected(t, srv), "/l", worldACL).Lock()
	}), []string{"-lock-0000000000 (data), of session 0x100000000000001"}},
	{"an event that does not come", inBubble(func(t *testing.T, srv *zktest.Server) {
		_, _, events, err := connected(t, srv).ExistsW("/ready")
		assert.NoError(t, err)
		<-events
	}), []string{"/ready (exist), which is not there", ": chan receive"}},
	{"a client that renews by itself", inBubble(func(t *testing.T, srv *zktest.Server) {
		c := begin(t, srv, 10*time.Second)
		for range time.Tick(5 * time.Second) {
			c.must(wire.OpSync, &wire.PathRequest{Path: "/"}, nil)
			c.must(wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{
				{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/", Version: -1}},
			}}, nil)
		}
	}), []string{"in 1h0m0s of virtual time"}},
	{"nothing but a server", inBubble(func(*testing.T, *zktest.Server) {
		<-make(chan struct{})
	}), []string{": chan receive"}},
	{"a loop that polls for what does not come", inBubble(func(*testing.T, *zktest.Server) {
		for {
			time.Sleep(time.Second)
		}
	}), []string{"no client has asked for anything in 24h0m0s", ": time.Sleep, sleep"}},
	{"a server outside, a client inside", func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		synctest.Test(t, func(t *testing.T) { connected(t, srv) })
	}, []string{"its server is outside: start the server within synctest.Test, with InMemory"}},
}

func inBubble(test func(t *testing.T, srv *zktest.Server)) func(t *testing.T) {
	return func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, zktest.Start(t, zktest.InMemory())) })
	}
}

// connected is connect with a session.
func connected(t *testing.T, srv *zktest.Server) *zk.Conn {
	conn := connect(t, srv, 10*time.Second)
	_, _, err := conn.Get("/")
	assert.NoError(t, err)
	return conn
}

// create creates a node, however long it takes.
func create(conn *zk.Conn) {
	for {
		if _, err := conn.Create("/a", nil, 0, worldACL); err == nil {
			return
		}
	}
}

// wrongTest names the wrong test that a process is to run.
const wrongTest = "ZKTEST_WRONG"

func TestWhatWrongTestsPrint(t *testing.T) {
	for _, wrong := range wrongTests {
		t.Run(wrong.name, func(t *testing.T) {
			switch os.Getenv(wrongTest) {
			case wrong.name:
				wrong.test(t)
				return
			case "":
			default:
				t.Skip("another one")
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWhatWrongTestsPrint$", "-test.timeout=1m")
			cmd.Env = append(os.Environ(), wrongTest+"="+wrong.name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			t.Logf("%s", out)
			for _, want := range wrong.says {
				assert.Contains(t, string(out), want)
			}
		})
	}
}

func TestWatchdogLetsPatientTestsBe(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{
		"one that sleeps":                    nil,
		"one that asks now and then":         nil,
		"one that waits, and says for long":  {zktest.Watchdog(24 * time.Hour)},
		"one that waits, without a watchdog": {zktest.Watchdog(0)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, append(opts, zktest.InMemory())...)
				switch {
				case opts != nil:
					<-time.After(23 * time.Hour)
				case name == "one that sleeps":
					time.Sleep(23 * time.Hour)
				default:
					for range 48 {
						c := begin(t, srv, 10*time.Second)
						c.must(wire.OpExists, watch("/"), nil)
						<-time.After(30 * time.Minute)
					}
				}
			})
		})
	}
}
