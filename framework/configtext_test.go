package framework

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/retry"
)

const allSettings = `
# servers
ConnectString = zk1:2181,zk2:2181/app
SessionTimeout=10s
ConnectTimeout = 2s
CloseTimeout = 1s
LostAfter = 8s

Retry = ntimes retries=3 sleep=100ms
Namespace = orders
Auth = digest:a:b=c
Auth = ip:10.0.0.1
FollowEnsemble = true
Prefer = zk-a-*, 10.0.1.*
TLSFiles.CA = ca.pem
TLSFiles.Certificate = cert.pem
TLSFiles.Key = key.pem
CanBeReadOnly = 1
SessionLease = server
ServerTick = 2s
NoContainers = true
NoBatches = true
MaxReply = 8388608
MaxRequest = 4096
`

func TestParseConfig(t *testing.T) {
	cfg, err := ParseConfig(allSettings)
	require.NoError(t, err)
	policy, err := retry.Parse("ntimes retries=3 sleep=100ms")
	require.NoError(t, err)
	assert.Equal(t, Config{
		ConnectString: "zk1:2181,zk2:2181/app", SessionTimeout: 10 * time.Second, ConnectTimeout: 2 * time.Second,
		CloseTimeout: time.Second, LostAfter: 8 * time.Second, Retry: policy, Namespace: "orders",
		Auth:           []Auth{{"digest", []byte("a:b=c")}, {"ip", []byte("10.0.0.1")}},
		FollowEnsemble: true, Prefer: []string{"zk-a-*", "10.0.1.*"}, TLSFiles: TLSFiles{CA: "ca.pem", Certificate: "cert.pem", Key: "key.pem"}, CanBeReadOnly: true,
		SessionLease: LeaseByServer, ServerTick: 2 * time.Second, NoContainers: true, NoBatches: true, MaxReply: 8 << 20, MaxRequest: 4 << 10,
	}, cfg)
}

func TestConfigFromEnv(t *testing.T) {
	for line := range strings.Lines(allSettings) {
		if name, value, ok := strings.Cut(line, "="); ok {
			t.Setenv("ZK_"+variableOf(strings.TrimSpace(name)), strings.TrimSpace(value))
		}
	}
	t.Setenv("ZK_SERVICE_HOST", "10.0.0.1") // as Kubernetes sets it
	want, err := ParseConfig(strings.Replace(allSettings, "Auth = digest:a:b=c\n", "", 1))
	require.NoError(t, err)
	cfg, err := ConfigFromEnv("ZK_")
	require.NoError(t, err)
	assert.Equal(t, want, cfg)

	t.Setenv("ZK_SESSION_TIMEOUT", "10")
	_, err = ConfigFromEnv("ZK_")
	require.EqualError(t, err, `config: ZK_SESSION_TIMEOUT is "10": it must be a duration with a unit, such as 10s`)
}

// Files of secrets end with a line end, and a variable may have what stands in one.
func TestSpaceAroundValues(t *testing.T) {
	want, err := ParseConfig(strings.Replace(allSettings, "Auth = digest:a:b=c\n", "", 1))
	require.NoError(t, err)
	for _, space := range []string{"\n", "\r\n", "\r", " ", "\t", "\n\n"} {
		for line := range strings.Lines(allSettings) {
			if name, value, ok := strings.Cut(line, "="); ok {
				t.Setenv("ZK_"+variableOf(strings.TrimSpace(name)), space+strings.TrimSpace(value)+space)
			}
		}
		cfg, err := ConfigFromEnv("ZK_")
		require.NoError(t, err)
		assert.Equal(t, want, cfg)

		cfg, err = ParseConfig(byteOrderMark + strings.ReplaceAll(strings.ReplaceAll(allSettings, "Auth = digest:a:b=c\n", ""), "\n", strings.TrimSuffix(space, "\n")+"\n"))
		require.NoError(t, err)
		assert.Equal(t, want, cfg)
	}
	for name := range settings {
		t.Setenv("ZK_"+variableOf(name), " \n")
	}
	cfg, err := ConfigFromEnv("ZK_")
	require.NoError(t, err)
	assert.Zero(t, cfg, "they are empty")
}

func TestVariableWithLines(t *testing.T) {
	for name := range settings {
		for _, end := range []string{"\n", "\r\n", "\r"} {
			t.Run(name, func(t *testing.T) {
				t.Setenv("ZK_"+variableOf(name), "digest:a:secret"+end+"digest:b:secret")
				_, err := ConfigFromEnv("ZK_")
				require.EqualError(t, err, "config: ZK_"+variableOf(name)+" has more than one line")
			})
		}
	}
}

func TestParseConfigNamesTheField(t *testing.T) {
	for text, want := range map[string]string{
		"SessionTimeout = 10":                "config: SessionTimeout is \"10\": it must be a duration with a unit, such as 10s",
		"MaxReply = 4MB":                     "config: MaxReply is \"4MB\": it must be a number of bytes",
		"NoBatches = yes":                    "config: NoBatches is \"yes\": it must be true or false",
		"SessionLease = x":                   "config: SessionLease is \"x\": it must be quorum or server",
		"Auth = secret":                      "config: Auth must be a scheme, a colon and the data, as in digest:user:password",
		"Retry = often":                      "config: Retry cannot be read: retry policy \"often\"",
		"Timeout = 10s":                      "config: Timeout is no field that a text can set",
		"connectString = a":                  "config: connectString is no field that a text can set: write ConnectString",
		"Auth = digest:secret":               "config: Auth must be a scheme, a colon and the data, as in digest:user:password",
		"Auth = 'digest:a:secret'":           "config: Auth is in quotes, which would be part of it: leave them out",
		"Namespace = \"secret\"":             "config: Namespace is in quotes",
		"Logger = x":                         "config: Logger is no field that a text can set",
		"Namespace = a\nNamespace = b":       "config: Namespace is set twice",
		"Auth = digest:a:b\nsecret password": "config: text has a line that is not: field = value (line 2)",
		"\n# first\nAuth: digest:a:secret==": "config: text has a line that is not: field = value (line 3)",
		"= secret":                           "config: text has a line that is not: field = value (line 1)",
		"CONNECT_STRING = zk1":               "config: text has a line that names no field (line 1): write ConnectString",
		"\nexport ZK_TLS_CA=ca.pem":          "config: text has a line that names no field (line 2): write TLSFiles.CA",
		"secret_AUTH=digest:a:secret":        "config: text has a line that names no field (line 1): write Auth",
		"session-timeout = 5s":               "config: text has a line that names no field (line 1): write SessionTimeout",
		"tls_files.ca = a":                   "config: text has a line that names no field (line 1): write TLSFiles.CA",
		"TLSCA = a":                          "config: TLSCA is no field that a text can set: write TLSFiles.CA",
		"secret_string = a":                  "config: text has a line that is not: field = value (line 1)",
		"- = secret":                         "config: text has a line that is not: field = value (line 1)",
		byteOrderMark + "secret":             "config: text has a line that is not: field = value (line 1)",
		"Auth = digest:a:secret\rMaxReply=1": "config: Auth has more than one line",
	} {
		_, err := ParseConfig(text)
		var wrong *ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// The table in the docs has what a text can set, and all other fields are for programs.
func TestSettingsAreInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/framework.md")
	require.NoError(t, err)
	for name := range settings {
		assert.Contains(t, string(page), "| `"+name+"` | `"+variableOf(name)+"` |")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		_, set := settings[field.Name]
		switch field.Type.Kind() {
		case reflect.Func, reflect.Interface, reflect.Pointer:
			assert.False(t, set, field.Name)
		default:
			assert.True(t, set || !field.IsExported() || field.Name == "TLSFiles" || field.Name == "DefaultData", field.Name)
		}
	}
}
