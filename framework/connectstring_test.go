package framework

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		"a:1,":                       {[]string{"a:1"}, ""},
		",a:1,, b:1 , ,":             {[]string{"a:1", "b:1"}, ""},
		"a:1,a:2,a:1":                {[]string{"a:1", "a:2"}, ""},
		"a,b,a:2181/c":               {[]string{"a:2181", "b:2181"}, "/c"},
		"a:1\n":                      {[]string{"a:1"}, ""},
		"a:1/b c":                    {[]string{"a:1"}, "/b c"},
		"zk_1:1":                     {[]string{"zk_1:1"}, ""},
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
		"/app":         "has no server",
		", ,/app":      "has no server",
		"a:1;b:1":      "has a semicolon: servers are separated by commas",
		"a;b/app":      "has a semicolon",
		"${ZK}":        `server "${ZK}": is a variable`,
		"a:1,$ZK/app":  "is a variable",
		"{{.Servers}}": "is a variable",
		"%ZK%":         "is a variable",
		"zk1:2181 zk2": "no host name has",
		"\"zk1:2181\"": "no host name has",
		"<servers>":    "no host name has",
		"a:1/app ":     "ends in a space",
		"a:1/app\n":    "U+000A",
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
