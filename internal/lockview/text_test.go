package lockview

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/session/nodename"
)

func TestOwnerOfNames(t *testing.T) {
	tag := nodename.Tag{1, 2, 3, 4, 5, 0xab}
	for name, want := range map[string]struct {
		owner string
		multi bool
	}{
		nodename.Owned([10]byte{}, tag, false): {"0102030405ab", false},
		nodename.Owned([10]byte{}, tag, true):  {"0102030405ab", true},
		nodename.Random([16]byte{}):            {"", false},
		"":                                     {"", false},
	} {
		owner, multi := ownerOf("/a/b/" + name + "lock-0000000001")
		assert.Equal(t, want.owner, owner, name)
		assert.Equal(t, want.multi, multi, name)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":      "plain text",
		"ünïcode":         "ünïcode",
		"a\x1b[31mb":      `a\x1b[31mb`,
		"line\nbreak\t\r": `line\nbreak\t\r`,
		"back\\slash":     `back\\slash`,
		"\u202eabc":       `\u202eabc`,
		"\u009b2J":        `\u009b2J`,
		"\xff\xfe":        `\xff\xfe`,
		"\ufffd":          `\xef\xbf\xbd`,
	} {
		assert.Equal(t, want, Printable(in))
	}
}
