package framework_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// An outage is told at warn when it has lasted for a second, then ever more
// seldom, and at its end. What each attempt came to is told at debug, once.
func TestLogOfAnOutage(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(srv *zktest.Server, cfg *framework.Config) (end func())
		first time.Duration // when it is first told at the latest
		want  string
	}{
		"no server": {func(srv *zktest.Server, _ *framework.Config) func() {
			_ = srv.Stop()
			return func() { _ = srv.Restart() }
		}, 3 * time.Second, "connection refused"}, // after a second, and a pause of two
		"credentials refused": {func(srv *zktest.Server, cfg *framework.Config) func() {
			cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("nobody:hush")}}
			rule := srv.On(zktest.Match{Op: "auth"}, zktest.Fail(-115))
			return rule.Remove
		}, 0, "credentials refused: "},
		"a silent server": {func(srv *zktest.Server, _ *framework.Config) func() {
			srv.Freeze()
			return srv.Thaw
		}, 10 * time.Second, "handshake: read: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged, logs := kit.Logged(zapcore.DebugLevel)
				srv := zktest.Start(t, zktest.InMemory())
				var end func()
				cfg := kit.Config(srv, logged, func(cfg *framework.Config) { end = tc.begin(srv, cfg) })
				began := time.Now()
				c, err := framework.Start(cfg)
				require.NoError(t, err)
				defer func() { _ = c.Close() }()
				time.Sleep(15 * time.Minute)
				warned := logs.FilterLevelExact(zapcore.WarnLevel).All()
				require.NotEmpty(t, warned)
				assert.Less(t, len(warned), 15)
				for i, line := range warned {
					assert.Equal(t, "not connected", line.Message)
					assert.Contains(t, line.ContextMap()["error"], tc.want)
					assert.NotContains(t, line.ContextMap()["error"], "hush")
					switch i {
					case 0:
						assert.LessOrEqual(t, line.Time.Sub(began), tc.first)
					case 1:
						assert.GreaterOrEqual(t, line.Time.Sub(warned[0].Time), 10*time.Second)
					default:
						before := warned[i-1].Time.Sub(warned[i-2].Time)
						assert.GreaterOrEqual(t, line.Time.Sub(warned[i-1].Time), min(before, 10*time.Minute)-11*time.Second, "the pauses grow")
					}
				}
				type at struct{ when, what string }
				told := make(map[at]int)
				for _, line := range logs.All() {
					assert.NotEqual(t, "go-zookeeper", line.Message, "%v", line.ContextMap())
					if text, ok := line.ContextMap()["error"].(string); ok {
						told[at{line.Time.String(), text}]++
					}
				}
				for line, times := range told {
					assert.Equal(t, 1, times, "%v", line)
				}

				end()
				time.Sleep(kit.SessionTimeout / 4)
				require.NoError(t, c.BlockUntilConnected(t.Context()))
				synctest.Wait()
				last := logs.FilterLevelExact(zapcore.WarnLevel).All()[len(warned):]
				require.Len(t, last, 1, "once when it is over")
				assert.Equal(t, "connected", last[0].Message)
				assert.Contains(t, last[0].ContextMap(), "not_connected_for")
			})
		})
	}
}

// A short outage is nothing to be warned of.
func TestLogOfAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, logs := kit.Logged(zapcore.InfoLevel)
		srv := zktest.Start(t, zktest.InMemory())
		c := kit.Connect(t, srv, logged)
		time.Sleep(time.Minute)
		require.NoError(t, srv.Stop())
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, srv.Restart())
		require.NoError(t, c.BlockUntilConnected(t.Context()))
		synctest.Wait()
		var said []string
		for _, line := range logs.All() {
			said = append(said, line.Level.String()+" "+line.Message)
		}
		assert.Equal(t, "info connected, info connection lost, info connected", strings.Join(said, ", "))
	})
}
