package framework

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/retry"
)

func TestConfigNamesTheFieldThatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		field  string
		change func(*Config)
		want   string
	}{
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = -time.Second }, "must not be negative"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = time.Microsecond }, "a millisecond at least"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = 15 }, "write 15*time.Second"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = 999 }, "write 999*time.Second"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = 15000 }, "write 15*time.Second"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = 1500 }, "write 1500*time.Millisecond"},
		{"CloseTimeout", func(c *Config) { c.CloseTimeout = 60000 }, "write 60*time.Second"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = time.Second - 1 }, "1s at least"},
		{"ConnectString", func(c *Config) { c.ConnectString = "zk://user:secret@a:1" }, "ConnectString has a scheme: it is host:port pairs alone, as in zk1:2181,zk2:2181/app"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = math.MaxInt64 }, "at most"},
		{"ConnectTimeout", func(c *Config) { c.ConnectTimeout = -1 }, "must not be negative"},
		{"ConnectTimeout", func(c *Config) { c.ConnectTimeout = 20 * time.Second }, "is 20s: it must be SessionTimeout at most, which is 15s"},
		{"LostAfter", func(c *Config) { c.LostAfter = -1 }, "must not be negative"},
		{"LostAfter", func(c *Config) { c.LostAfter = 15*time.Second + 1 }, "SessionTimeout at most"},
		{"CloseTimeout", func(c *Config) { c.CloseTimeout = 1000 * time.Hour }, "at most"},
		{"Retry", func(c *Config) { c.Retry = retry.ExponentialBackoff(1000, 3) }, `config: Retry is "exponential base=1µs retries=3": the base is 1µs: it must be 100µs at least`},
		{"Retry", func(c *Config) { c.Retry = retry.Forever(time.Second).WithAttemptTimeout(5) }, "WithAttemptTimeout is 5ns"},
		{"Namespace", func(c *Config) { c.Namespace = "/a" }, "empty element"},
		{"Namespace", func(c *Config) { c.Namespace = "a/" }, "ends with a slash"},
		{"Namespace", func(c *Config) { c.Namespace = "a/../b" }, "relative"},
		{"Auth", func(c *Config) { c.Auth = []Auth{{"digest", nil}, {}} }, "entry 1 has no scheme"},
		{"SessionLease", func(c *Config) { c.SessionLease = 7 }, "none of"},
		{"ServerTick", func(c *Config) { c.ServerTick = -1 }, "must not be negative"},
		{"ServerTick", func(c *Config) { c.ServerTick = 15*time.Second + 1 }, "SessionTimeout at most"},
		{"MaxReply", func(c *Config) { c.MaxReply = -1 }, "must be from"},
		{"MaxRequest", func(c *Config) { c.MaxRequest = 10 }, "must be from"},
	} {
		cfg := Config{ConnectString: "a:1"}
		tc.change(&cfg)
		_, err := Start(cfg)
		var ce *ConfigError
		require.ErrorAs(t, err, &ce, tc.field)
		assert.Equal(t, tc.field, ce.Field)
		assert.ErrorContains(t, err, tc.want)
		_, err = Connect(t.Context(), cfg)
		require.ErrorAs(t, err, &ce, tc.field)
	}
}

func TestConfigDefaults(t *testing.T) {
	p, err := Config{ConnectString: "a:1"}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, 15*time.Second, p.SessionTimeout)
	assert.Equal(t, 5*time.Second, p.ConnectTimeout)
	assert.Equal(t, 5*time.Second, p.CloseTimeout)
	assert.Equal(t, lease.ByQuorum, p.session().Lease, "one name, of one server or of many")
	assert.Equal(t, 4<<20, p.MaxReply)
	assert.Equal(t, 1048575, p.MaxRequest)
	assert.Equal(t, defaultRetry().String(), p.Retry.String())
	assert.NotNil(t, p.DialContext)
	assert.NotNil(t, p.Logger)
	assert.Equal(t, []ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}, p.ACL("/"))

	p, err = Config{ConnectString: "a:1,b:1", Retry: retry.None(), SessionTimeout: time.Second, ServerTick: time.Second, LostAfter: time.Second, SessionLease: LeaseByServer}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, lease.ByServer, p.session().Lease, "asked for")
	assert.Equal(t, time.Second, p.session().ServerTick)
	assert.Equal(t, "none", p.Retry.String())
	assert.Equal(t, time.Second/3, p.ConnectTimeout)
}

func TestCredentialsDoNotPrint(t *testing.T) {
	cfg := Config{ConnectString: "a:1", Auth: []Auth{{"digest", []byte("user:hunter2")}}}
	encoded, err := json.Marshal(cfg.Auth)
	require.NoError(t, err)
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("starting", "auth", cfg.Auth, "first", cfg.Auth[0], "config", cfg)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("starting", "auth", cfg.Auth, "first", cfg.Auth[0], "config", cfg)
	prints := []string{string(encoded), logged.String()}
	for _, verb := range []string{"v", "+v", "#v", "s", "q", "x", "X", "d"} {
		for _, v := range []any{cfg, &cfg, cfg.Auth, cfg.Auth[0], &cfg.Auth[0], struct{ C Config }{cfg}} {
			prints = append(prints, fmt.Sprintf("%"+verb, v))
		}
	}
	for _, text := range prints {
		// As it is, as numbers, in Go's syntax, hexadecimal, and in JSON.
		for _, secret := range []string{"hunter2", "104 117", "0x68, 0x75", "68756e", "68756E", "aHVudG", "h1bnRlc", "odW50ZX"} {
			assert.NotContains(t, text, secret)
		}
	}
	assert.Equal(t, `["digest:***"]`, string(encoded))
	assert.Contains(t, fmt.Sprint(cfg), "digest:***")
}
