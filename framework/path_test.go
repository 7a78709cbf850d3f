package framework

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
