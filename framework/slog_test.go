package framework_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	zktest "github.com/paddock-zk/paddock/testing"
)

// What a logger of zap is given arrives at a handler of slog, with levels, kinds, groups
// and what was given before.
func TestSlogLogger(t *testing.T) {
	var out bytes.Buffer
	log := framework.SlogLogger(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	line := func() (got map[string]any) {
		t.Helper()
		require.NoError(t, json.Unmarshal(out.Bytes(), &got), out.String())
		out.Reset()
		delete(got, slog.TimeKey)
		return got
	}
	log.Debug("not enabled")
	assert.Empty(t, out.String())

	log.Info("all kinds", zap.String("s", "x"), zap.Int("i", 1), zap.Bool("b", true), zap.Duration("d", time.Second),
		zap.Error(errors.New("broken")), zap.Uint64("u", 2), zap.Float64("f", 0.5), zap.Strings("l", []string{"a", "b"}),
		zap.ByteString("bytes", []byte("y")), zap.Skip(), zap.Dict("dict", zap.Int("in", 3)))
	assert.Equal(t, map[string]any{
		"level": "INFO", "msg": "all kinds", "s": "x", "i": 1.0, "b": true, "d": 1e9, "error": "broken", "u": 2.0, "f": 0.5,
		"l": []any{"a", "b"}, "bytes": "y", "dict": map[string]any{"in": 3.0},
	}, line())

	named := log.Named("zk").With(zap.String("server", "a:1"), zap.Namespace("lock"), zap.String("path", "/l"))
	named.Warn("waiting", zap.Int("ahead", 2), zap.Namespace("deep"), zap.Int("n", 1))
	assert.Equal(t, map[string]any{
		"level": "WARN", "msg": "waiting", "server": "a:1",
		"lock": map[string]any{"path": "/l", "ahead": 2.0, "deep": map[string]any{"logger": "zk", "n": 1.0}},
	}, line())

	log.DPanic("worse than an error")
	assert.Equal(t, map[string]any{"level": "ERROR", "msg": "worse than an error"}, line())
	require.NoError(t, log.Sync())
	framework.SlogLogger(nil).Error("nobody hears of it")
}

// A client logs to a handler of slog.
func TestClientLogsToSlog(t *testing.T) {
	var out bytes.Buffer
	srv := zktest.Start(t)
	c := kit.Connect(t, srv, func(cfg *framework.Config) {
		cfg.Logger = framework.SlogLogger(slog.NewTextHandler(&out, nil))
	})
	require.NoError(t, c.Close())
	assert.Contains(t, out.String(), "level=INFO msg=connected server="+srv.ConnectString())
}

func ExampleSlogLogger() {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	cfg := framework.Config{ConnectString: "zk1:2181", Logger: framework.SlogLogger(handler)}
	cfg.Logger.Warn("not connected", zap.String("server", "zk1:2181"))
	// Output: level=WARN msg="not connected" server=zk1:2181
}
