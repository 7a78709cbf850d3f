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
		yields                        bool
	}{
		{"version 4", Random(full), "_c_ffffffff-ffff-4fff-bfff-ffffffffffff-", "", false},
		{"zeros", Random([16]byte{}), "_c_00000000-0000-4000-8000-000000000000-", "", false},
		{"owned", Owned([10]byte(full[:]), tag, false), "_c_7fffffff-ffff-8fff-bfff-0102030405ab-", "0102030405ab", false},
		{"owned, yields", Owned([10]byte{}, tag, true), "_c_80000000-0000-8000-8000-0102030405ab-", "0102030405ab", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.prefix, tc.protection)
			node := tc.protection + "lock-0000000007"
			got, yields := TagOf(node)
			assert.Equal(t, tc.tag, got)
			assert.Equal(t, tc.yields, yields)
			assert.Equal(t, tc.yields, Yields([]byte(node)))
			assert.Equal(t, tc.prefix, Protection(node))
			rest, had := Unprotected(node)
			assert.True(t, had)
			assert.Equal(t, "lock-0000000007", rest)
		})
	}
}

func TestNamesOfOthers(t *testing.T) {
	for _, name := range []string{
		"", "lock-0000000007", "_c_", "_c_80000000-0000-8000-8000-0102030405ab-",
		"_d_80000000-0000-8000-8000-0102030405ab-lock-", "_c_80000000-0000-8000-8000-0102030405abxlock-",
	} {
		tag, yields := TagOf(name)
		assert.Empty(t, tag, name)
		assert.False(t, yields, name)
		assert.False(t, Yields(name), name)
		assert.Empty(t, Protection([]byte(name)), name)
		rest, had := Unprotected(name)
		assert.False(t, had, name)
		assert.Equal(t, name, rest)
	}
}
