package kit

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/retry"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Each failure happens at the request that a rule names, and the caller notices.
func TestFailures(t *testing.T) {
	for name, failure := range Failures() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				c := Connect(t, srv, func(cfg *framework.Config) { cfg.Retry = retry.None() })
				_, err := c.Create(t.Context(), "/e", nil, framework.Ephemeral)
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				id := c.SessionID()
				rule := srv.On(zktest.Match{Session: id, Op: "setData", Nth: 1}, failure(t, srv, c, cancel))
				_, err = c.Set(ctx, "/e", []byte("x"), framework.AnyVersion)
				time.Sleep(time.Second)
				require.Equal(t, 1, rule.Fired())
				left := srv.Ephemerals(id)
				switch name {
				case "cancelled":
					require.Error(t, ctx.Err())
				case "closed", "expired", "nodes deleted":
					assert.Empty(t, left)
				default: // cut or refused
					require.Error(t, err)
					assert.Equal(t, strings.HasPrefix(name, "code"), !framework.Ambiguous(err), "%v", err)
				}
				if name != "closed" && name != "expired" && name != "nodes deleted" {
					assert.Equal(t, []string{"/e"}, left)
				}
			})
		})
	}
}

func TestMoments(t *testing.T) {
	assert.Equal(t, []int{0, 1, 2}, slices.Collect(Moments(t, 3, true)))
	seen := make(map[int]bool)
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		t.Run(name, func(t *testing.T) {
			some := slices.Collect(Moments(t, 24, false))
			assert.Len(t, some, 3)
			assert.Equal(t, []int{some[0], some[0] + 8, some[0] + 16}, some)
			seen[some[0]] = true
		})
	}
	assert.Greater(t, len(seen), 4, "tests begin at different moments")
}

func TestAt(t *testing.T) {
	for op, want := range map[string][2]bool{"ping": {}, "connect": {}, "create2": {true, true}, "delete": {true, false}, "multi": {true, false}} {
		assert.Equal(t, want[0], At("cut after")(zktest.Request{Op: op}), op)
		assert.Equal(t, want[1], At("code -101")(zktest.Request{Op: op}), op)
	}
}

// printing is a test whose output can be read.
type printing struct {
	testing.TB
	bytes.Buffer
}

func (p *printing) Output() io.Writer { return &p.Buffer }

func TestTried(t *testing.T) {
	p := &printing{TB: t}
	Tried(p, "calls", map[[2]string]int{{"cut", "once"}: 2, {"cut", "again"}: 1, {"closed", "once"}: 4})
	assert.Equal(t, strings.Join([]string{
		"", "sweep: calls: closed              once 4", "sweep: calls: cut                 again 1  once 2", "sweep: calls: 7 in all, 0 leaks", "",
	}, "\n"), p.String())
}
