package nodename

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNames(t *testing.T) {
	full := [16]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	tag := Tag{1, 2, 3, 4, 5, 0xab}
	for _, tc := range []struct {
		name, protection, prefix, tag string
		way                           Way
	}{
		{"version 4", Random(full), "_c_ffffffff-ffff-4fff-bfff-ffffffffffff-", "", Unknown},
		{"zeros", Random([16]byte{}), "_c_00000000-0000-4000-8000-000000000000-", "", Unknown},
		{"plain", Owned([10]byte(full[:]), Owner{tag, Plain}), "_c_1fffffff-ffff-8fff-bfff-0102030405ab-", "0102030405ab", Plain},
		{"nesting", Owned([10]byte{}, Owner{tag, Nesting}), "_c_20000000-0000-8000-8000-0102030405ab-", "0102030405ab", Nesting},
		{"reverse", Owned([10]byte{}, Owner{tag, Reverse}), "_c_40000000-0000-8000-8000-0102030405ab-", "0102030405ab", Reverse},
		{"joint", Owned([10]byte{}, Owner{tag, Joint}), "_c_80000000-0000-8000-8000-0102030405ab-", "0102030405ab", Joint},
		{"ordered", Owned([10]byte(full[:]), Owner{tag, Ordered}), "_c_bfffffff-ffff-8fff-bfff-0102030405ab-", "0102030405ab", Ordered},
		{"backward", Owned([10]byte{}, Owner{tag, Backward}), "_c_c0000000-0000-8000-8000-0102030405ab-", "0102030405ab", Backward},
		{"ordered, of a version that drew bits", "_c_f0000000-0000-8000-8000-0102030405ab-", "_c_f0000000-0000-8000-8000-0102030405ab-", "0102030405ab", Ordered},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.prefix, tc.protection)
			node := tc.protection + "lock-0000000007"
			assert.Equal(t, tc.tag, TagOf(node))
			assert.Equal(t, tc.way, WayOf([]byte(node)))
			assert.Equal(t, tc.way.Yields(), Yields([]byte(node)))
			assert.Equal(t, tc.prefix, Protection(node))
		})
	}
}

func TestNamesOfOthers(t *testing.T) {
	for _, name := range []string{
		"", "lock-0000000007", "_c_", "_c_80000000-0000-8000-8000-0102030405ab-",
		"_d_80000000-0000-8000-8000-0102030405ab-lock-", "_c_80000000-0000-8000-8000-0102030405abxlock-",
	} {
		assert.Empty(t, TagOf(name), name)
		assert.Equal(t, Unknown, WayOf(name), name)
		assert.False(t, Yields(name), name)
		assert.Empty(t, Protection([]byte(name)), name)
	}
}

func TestTagsSayWhoBeganFirst(t *testing.T) {
	const write, epoch = 1 << 8, 1 << 32 // what a tag tells apart
	text := func(zxid int64, last byte) string {
		return TagOf(Owned([10]byte{}, Owner{NewTag(zxid, [3]byte{0, 0, last}), Joint}) + "lock-0000000001")
	}
	for name, c := range map[string]struct {
		older, younger   int64
		oldLast, newLast byte
	}{
		"some transactions":              {5 * write, 6 * write, 0xff, 0},
		"the same, by chance":            {5 * write, 5*write + 1, 1, 2},
		"another leader":                 {3*epoch + 900*write, 4*epoch + write, 0xff, 0},
		"transactions that came round":   {1<<28 - write, 1 << 28, 0xff, 0},
		"leaders that came round":        {16*epoch - write, 17 * epoch, 0xff, 0},
		"nothing seen yet":               {0, epoch + write, 0xff, 0},
		"as far as can be, then by text": {0, 8 * epoch, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			older, younger := text(c.older, c.oldLast), text(c.younger, c.newLast)
			assert.True(t, Younger(younger, older))
			assert.False(t, Younger(older, younger))
			assert.False(t, Younger(older, older))
		})
	}
}

// A tag of another form is compared as text.
func TestTagsOfAnotherForm(t *testing.T) {
	for _, c := range [][2]string{{"", "000000"}, {"abc", "x"}, {"000000", "x00000000000"}} {
		assert.True(t, Younger(c[1], c[0]), c)
		assert.False(t, Younger(c[0], c[1]), c)
	}
}
