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
		nodename.Owned([10]byte{}, nodename.Owner{Tag: tag, Way: nodename.Plain}):   {"0102030405ab", false},
		nodename.Owned([10]byte{}, nodename.Owner{Tag: tag, Way: nodename.Joint}):   {"0102030405ab", true},
		nodename.Owned([10]byte{}, nodename.Owner{Tag: tag, Way: nodename.Ordered}): {"0102030405ab", true},
		nodename.Random([16]byte{}): {"", false},
		"":                          {"", false},
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

func TestKindOf(t *testing.T) {
	for name, tc := range map[string]struct {
		names []string
		want  Kind
		says  string
	}{
		"nobody":         {nil, None, ""},
		"other names":    {[]string{"config", "lock-1", "locks", "party-0000000001"}, None, ""},
		"mutex":          {[]string{"_c_1-lock-0000000001"}, Mutex, ""},
		"both sides":     {[]string{"_c_1__READ__0000000001", "_c_1__WRIT__0000000002"}, ReadWrite, ""},
		"semaphore":      {[]string{"locks", "leases"}, Semaphore, ""},
		"only leases":    {[]string{"leases"}, Semaphore, ""},
		"leases by name": {[]string{"_c_1-lease-0000000001"}, None, ""},
		"latch":          {[]string{"_c_1-latch-0000000001"}, Latch, ""},
		"two":            {[]string{"_c_1-latch-0000000001", "lock-0000000002"}, None, "of a latch and of a mutex"},
		"in a semaphore": {[]string{"_c_1-latch-0000000001", "leases", "locks"}, None, "of a latch and of a semaphore"},
		"kazoo":          {[]string{"1__lock__0000000001", "2__rlock__0000000002"}, None, "kazoo"},
		"kazoo and ours": {[]string{"1__lock__0000000001", "lock-0000000002"}, None, "of a kazoo lock and of a mutex"},
	} {
		is, err := KindOf(tc.names)
		assert.Equal(t, tc.want, is, name)
		if tc.says == "" {
			assert.NoError(t, err, name)
			continue
		}
		assert.ErrorIs(t, err, ErrNoLock, name)
		assert.ErrorContains(t, err, tc.says, name)
	}
}
