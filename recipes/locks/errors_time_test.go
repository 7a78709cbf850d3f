package locks_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// logLines keeps what is logged, as text.
type logLines struct {
	zapcore.Core
	mu    *sync.Mutex
	lines *[]string
}

func (k logLines) Enabled(zapcore.Level) bool { return true }

func (k logLines) With([]zapcore.Field) zapcore.Core { return k }

func (k logLines) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, k)
}

func (k logLines) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	*k.lines = append(*k.lines, fmt.Sprint(e.Level, e.Message, enc.Fields))
	return nil
}

// Errors name nodes as the servers do, whatever chroot and namespace there are.
func TestPathsInErrorsAreInFull(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(endables)) {
		e := endables[name]
		if e.alone || strings.HasPrefix(name, "locks.Do at work") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				require.NoError(t, kit.Connect(t, srv).EnsurePath(t.Context(), "/root/app/x"))
				s := scene{c: inPlace(t, srv), path: "/x"}
				var err error
				s.hold, err = locks.NewInterProcessMutex(s.c, "/x/held").Acquire(t.Context())
				require.NoError(t, err)
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				var op *framework.OpError
				require.ErrorAs(t, e.call(ended, s), &op)
				for path := range strings.SplitSeq(op.Path, ", ") {
					root := name == "framework.Client.ReadAll" && path == "/root/app" // it is about many nodes
					assert.True(t, root || path == "multi-lock" || strings.HasPrefix(path, "/root/app/x"), path)
				}
			})
		})
	}
}

func TestPathsOfLostHoldsAreInFull(t *testing.T) {
	t.Parallel()
	for name, lock := range kit.Locks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				require.NoError(t, kit.Connect(t, srv).EnsurePath(t.Context(), "/root/app"))
				c, operator := inPlace(t, srv), kit.Connect(t, srv)
				h, err := lock(c).Acquire(t.Context())
				require.NoError(t, err)
				nodes := srv.Ephemerals(c.SessionID())
				for _, node := range nodes { // those of a turn may be on their way out
					require.NoError(t, operator.Delete(t.Context(), node, framework.AnyVersion, framework.IfExists()))
				}
				tx := h.Transaction()
				tx.Create("/made", nil, framework.Persistent)
				_, err = tx.Commit(t.Context())
				require.ErrorIs(t, err, locks.ErrFenced)
				for _, err := range []error{err, h.Err(), context.Cause(h.Context()), h.Release()} {
					var lost *locks.LostError
					require.ErrorAs(t, err, &lost)
					assert.Contains(t, nodes, lost.Path)
				}
				_, again := tx.Commit(t.Context())
				for _, err := range []error{err, again} {
					var op *framework.OpError
					require.ErrorAs(t, err, &op)
					assert.Contains(t, nodes, op.Path)
				}
			})
		})
	}
}

// Servers, their logs and their tools write session ids in hexadecimal.
func TestSessionsAreToldInHexadecimal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory(), zktest.Latency(time.Millisecond))
		var mu sync.Mutex
		var lines []string
		logged := func(cfg *framework.Config) { cfg.Logger = zap.New(logLines{zapcore.NewNopCore(), &mu, &lines}) }
		c, other := kit.Connect(t, srv, logged), kit.Connect(t, srv, logged)
		ids := []int64{c.SessionID(), other.SessionID()}
		h, err := locks.NewInterProcessMutex(c, "/l").Acquire(t.Context())
		require.NoError(t, err)
		told := []any{acquireWithin(t.Context(), locks.NewInterProcessMutex(other, "/l"), time.Second)}
		told = append(told, acquireWithin(t.Context(), locks.NewInterProcessMutex(c, "/l"), time.Second))
		all, err := locks.NewInterProcessMutex(other, "/l").Participants(t.Context())
		require.NoError(t, err)
		told = append(told, all, all[0])
		srv.DisconnectAll()
		time.Sleep(time.Second)
		require.NoError(t, srv.ExpireSession(c.SessionID()))
		time.Sleep(time.Second)
		ids = append(ids, c.SessionID())
		told = append(told, h.Err(), h.Release(), h.State())
		mu.Lock()
		defer mu.Unlock()
		for _, what := range told {
			lines = append(lines, fmt.Sprint(what), fmt.Sprintf("%v %+v", what, what))
		}
		text := strings.Join(lines, "\n")
		for _, id := range ids {
			assert.NotContains(t, text, strconv.FormatInt(id, 10))
			assert.Contains(t, text, fmt.Sprintf("%#x", id))
		}
	})
}
