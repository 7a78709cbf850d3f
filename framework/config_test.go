package framework

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/session/lease"
	"github.com/paddock-zk/paddock/retry"
)

func TestConnectStrings(t *testing.T) {
	for in, want := range map[string]struct {
		servers []string
		chroot  string
	}{
		"a:1":                        {[]string{"a:1"}, ""},
		"a:1,b:2":                    {[]string{"a:1", "b:2"}, ""},
		" a:1 , b:2 /app":            {[]string{"a:1", "b:2"}, "/app"},
		"a,b:2/x/y":                  {[]string{"a:2181", "b:2"}, "/x/y"},
		"a:1/":                       {[]string{"a:1"}, ""},
		"[::1]:2,[fe80::1%eth0]/c":   {[]string{"[::1]:2", "[fe80::1%eth0]:2181"}, "/c"},
		"zk-1.example.org:65535/ä/日": {[]string{"zk-1.example.org:65535"}, "/ä/日"},
	} {
		servers, chroot, err := parseConnectString(in)
		require.NoError(t, err, in)
		assert.Equal(t, want.servers, servers, in)
		assert.Equal(t, want.chroot, chroot, in)
	}
}

func TestMalformedConnectStrings(t *testing.T) {
	for in, want := range map[string]string{
		"":             "is empty",
		"  ":           "is empty",
		"/app":         `server "": is empty`,
		"a:1,":         `server "": is empty`,
		",a:1":         `server "": is empty`,
		"a:1,,b:1":     `server "": is empty`,
		"a:":           "port \"\" is not a number",
		":2181":        "has no host",
		"a:0":          "port \"0\" is not a number from 1 to 65535",
		"a:65536":      "port \"65536\"",
		"a:-1":         "port \"-1\"",
		"a:http":       "port \"http\"",
		"::1":          "must stand in brackets",
		"fe80::1:2181": "must stand in brackets",
		"[::1":         "is not host:port",
		"[::1]2181":    "is not host:port",
		"[nonsense]:1": "has no IPv6 address",
		"a b:1":        "no host name has",
		"zk://a:1":     "has a scheme",
		"a:b@c:1":      "credentials belong in Auth",
		"a:1//app":     "empty element",
		"a:1/app/":     "ends with a slash",
		"a:1/../x":     "relative element",
		"a:1/app,b:2/": "ends with a slash",
	} {
		_, err := Start(Config{ConnectString: in})
		var ce *ConfigError
		require.ErrorAs(t, err, &ce, in)
		assert.Equal(t, "ConnectString", ce.Field, in)
		assert.ErrorContains(t, err, want, in)
		assert.NotContains(t, err.Error(), "a:b")
	}
}

func TestConfigNamesTheFieldThatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		field  string
		change func(*Config)
		want   string
	}{
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = -time.Second }, "must not be negative"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = time.Microsecond }, "a millisecond at least"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = 15 }, "write 15*time.Second"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = time.Second - 1 }, "1s at least"},
		{"ConnectString", func(c *Config) { c.ConnectString = "zk://user:secret@a:1" }, "ConnectString has a scheme: it is host:port pairs alone, as in zk1:2181,zk2:2181/app"},
		{"SessionTimeout", func(c *Config) { c.SessionTimeout = math.MaxInt64 }, "at most"},
		{"ConnectTimeout", func(c *Config) { c.ConnectTimeout = -1 }, "must not be negative"},
		{"CloseTimeout", func(c *Config) { c.CloseTimeout = 1000 * time.Hour }, "at most"},
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

	p, err = Config{ConnectString: "a:1,b:1", Retry: retry.None(), SessionTimeout: time.Second, ServerTick: time.Second, SessionLease: LeaseByServer}.withDefaults()
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

func TestValidatePath(t *testing.T) {
	for _, good := range []string{
		"/", "/a", "/a/b", "/a.b", "/...", "/a..", "/..a", "/.a", "/ä", "/日本", "/a b", "/%2f", `/\`, "/_c_x", "/zookeeper/config",
		"/\ud7ff", "/\uf900", "/\uffef", "/" + strings.Repeat("x", 4094),
	} {
		assert.NoError(t, ValidatePath(good), good)
	}
	for bad, want := range map[string]string{
		"":                              "it is empty",
		"a":                             "does not begin with a slash",
		"/a/":                           "ends with a slash",
		"//":                            "ends with a slash",
		"//a":                           "empty element",
		"/a//b":                         "empty element",
		"/.":                            `relative element "."`,
		"/..":                           `relative element ".."`,
		"/./a":                          `relative element "."`,
		"/a/../b":                       `relative element ".."`,
		"/a\x00b":                       "U+0000 at byte 2",
		"/\x01":                         "U+0001",
		"/a\nb":                         "U+000A",
		"/\x1f":                         "U+001F",
		"/\x7f":                         "U+007F",
		"/\u0080":                       "U+0080",
		"/\ue000":                       "U+E000",
		"/\uf8ff":                       "U+F8FF",
		"/\ufff0":                       "U+FFF0",
		"/\uffff":                       "U+FFFF",
		"/😀":                            "U+1F600",
		"/\xff":                         "not UTF-8",
		"/\xed\xa0\x80":                 "not UTF-8",
		"/" + strings.Repeat("x", 4095): "longer than 4095 bytes",
		"/" + strings.Repeat("x", 1e6):  "(1000001 bytes)",
	} {
		err := ValidatePath(bad)
		require.ErrorIs(t, err, ErrInvalidPath, "%q", bad[:min(len(bad), 20)])
		assert.ErrorContains(t, err, want)
		assert.Less(t, len(err.Error()), 300)
		assert.NotContains(t, err.Error(), "\n", "a path in a log cannot begin a line")
	}
}

func TestErrorsQuotePathsThatNoPathMayBe(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b":             "get /a/b: ",
		"/a b":             "get /a b: ",
		"/a\nERROR forged": `get "/a\nERROR forged": `,
		"/a\x1b[2J":        `get "/a\x1b[2J": `,
		"/a\u0085b":        `get "/a\u0085b": `,
	} {
		err := &OpError{Op: "get", Path: path, Err: ErrInvalidPath}
		assert.Equal(t, want+ErrInvalidPath.Error(), err.Error())
	}
}

func TestMakePath(t *testing.T) {
	for _, tc := range []struct {
		want  string
		parts []string
	}{
		{"/", nil}, {"/", []string{""}}, {"/", []string{"/"}}, {"/", []string{"", "/", ""}},
		{"/a", []string{"a"}}, {"/a", []string{"/a/"}}, {"/a/b", []string{"a", "b"}}, {"/a/b", []string{"a/", "/b"}},
		{"/a/b", []string{"", "a", "", "b", ""}}, {"/a/b/c", []string{"a/b", "c"}},
	} {
		assert.Equal(t, tc.want, MakePath(tc.parts...), "%q", tc.parts)
	}
}

func TestPathAndNode(t *testing.T) {
	for path, want := range map[string][2]string{
		"/": {"/", ""}, "/a": {"/", "a"}, "/a/b": {"/a", "b"}, "/a/b/c": {"/a/b", "c"}, "a": {"/", "a"}, "": {"/", ""},
	} {
		parent, node := PathAndNode(path)
		assert.Equal(t, want, [2]string{parent, node}, path)
	}
}

func TestSequence(t *testing.T) {
	for name, want := range map[string]int32{"lock-0000000000": 0, "lock-0000000042": 42, "2147483647": 1<<31 - 1, "-0000000001": 1} {
		n, ok := Sequence(name)
		assert.True(t, ok, name)
		assert.Equal(t, want, n, name)
	}
	for _, name := range []string{"", "lock-", "lock-123", "000000000x", "lock--2147483648", "2147483648", "9999999999", "lock-00000000 1"} {
		_, ok := Sequence(name)
		assert.False(t, ok, name)
	}
}

func FuzzValidatePath(f *testing.F) {
	for _, s := range []string{"", "/", "/a/b", "/a/../b", "/\x00", "/😀", "/a\xffb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if ValidatePath(path) != nil {
			return
		}
		parent, node := PathAndNode(path)
		if err := ValidatePath(parent); err != nil {
			t.Fatalf("parent of %q: %v", path, err)
		}
		if again := MakePath(parent, node); again != path {
			t.Fatalf("%q became %q", path, again)
		}
	})
}

func FuzzConnectString(f *testing.F) {
	for _, s := range []string{"a:1", "a:1,b/x", "[::1]:2/c", ",", "a:1/../", "a:99999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, chroot, err := parseConnectString(s)
		if err != nil {
			return
		}
		again, chroot2, err := parseConnectString(strings.Join(servers, ",") + chroot)
		if err != nil || chroot2 != chroot || strings.Join(again, ",") != strings.Join(servers, ",") {
			t.Fatalf("%q gave %q %q, which gave %q %q %v", s, servers, chroot, again, chroot2, err)
		}
	})
}

func TestClassify(t *testing.T) {
	op := func(err error) error { return &OpError{Op: "get", Path: "/a", Err: err} }
	for _, tc := range []struct {
		err  error
		want retry.Decision
	}{
		{op(ErrNoNode), retry.Stop},
		{op(ErrNotConnected), retry.Again},
		{op(ErrOutcomeUnknown), retry.Unsure},
		{op(ErrClosed), retry.Stop},
		{ErrClosed, retry.Stop},
		{op(fmt.Errorf("%w: %w", ErrOutcomeUnknown, ErrClosed)), retry.Stop},
		{errors.New("somebody else's"), retry.Pass},
	} {
		assert.Equal(t, tc.want, Classify(tc.err), "%v", tc.err)
	}
	assert.True(t, Retryable(op(ErrNotConnected)))
	assert.False(t, Retryable(op(ErrOutcomeUnknown)))
	assert.False(t, Retryable(nil))
	assert.True(t, Ambiguous(op(ErrOutcomeUnknown)))
	assert.False(t, Ambiguous(op(ErrNoNode)))
}

// What a server has said counts, although the context ended at the same moment.
func TestWhatIsToldOfOneAttempt(t *testing.T) {
	offline := fmt.Errorf("%w: %w", context.Canceled, ErrNotConnected)
	lost := fmt.Errorf("%w: connection lost", ErrNotConnected)
	for name, tc := range map[string]struct {
		given retry.Error
		want  error // nil for all of it
	}{
		"ended before":            {retry.Error{Reason: context.Canceled}, context.Canceled},
		"an answer":               {retry.Error{Attempts: 1, Reason: retry.ErrStopped, Last: ErrNoNode}, ErrNoNode},
		"a lost reply":            {retry.Error{Attempts: 1, Reason: retry.ErrUnsure, Last: ErrOutcomeUnknown}, ErrOutcomeUnknown},
		"an answer as it ended":   {retry.Error{Attempts: 1, Reason: context.Canceled, Last: ErrNoNode}, ErrNoNode},
		"ended, and not answered": {retry.Error{Attempts: 1, Reason: context.Canceled, Last: offline}, offline},
		"lost as it ended":        {retry.Error{Attempts: 1, Reason: context.Canceled, Last: lost}, nil},
		"used up":                 {retry.Error{Attempts: 1, Reason: retry.ErrExhausted, Last: lost}, nil},
		"several":                 {retry.Error{Attempts: 2, Reason: retry.ErrStopped, Last: ErrNoNode}, nil},
	} {
		if tc.want == nil {
			tc.want = &tc.given
		}
		assert.Equal(t, tc.want, plainly(&tc.given), name)
	}
}
