package znode

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSequence(t *testing.T) {
	for name, want := range map[string]int32{
		"lock-0000000000":               0,
		"_c_uuid-lock-0000000042":       42,
		"0000000007":                    7,
		"lock-2147483647":               1<<31 - 1,
		"lock-2147483648":               -1, // beyond what a server counts
		"lock--000000001":               -1,
		"lock-000000001":                -1, // one digit too few
		"lock-00000000 1":               -1,
		"":                              -1,
		"a-name-that-has-no-number-yet": -1,
	} {
		n, ok := sequence(name)
		if assert.Equal(t, want >= 0, ok, name) && ok {
			assert.Equal(t, want, n, name)
		}
	}
}

func TestDigits(t *testing.T) {
	assert.Equal(t, "0000000042", Digits("_c_1-lock-0000000042", Lock))
	assert.Equal(t, "0000000042", Digits("lock-lock-0000000042", Lock), "behind the last one")
	assert.Equal(t, "-2147483648", Digits("x__WRIT__-2147483648", Write), "after an overflow")
}

func TestContender(t *testing.T) {
	for name, want := range map[string]bool{
		"_c_1-lock-0000000001":  true,
		"1__WRIT__0000000001":   true,
		"1__READ__0000000001":   true,
		"_c_1-lease-0000000001": true,
		"_c_1-latch-0000000001": true,
		"1__lock__0000000001":   true, // kazoo's
		"1__rlock__0000000001":  true,
		"1-lock-2147483648":     false, // no server counts so far
		"locks":                 false,
		"config":                false,
		"lock-1":                false,
		"0000000001":            false,
	} {
		_, ok := Contender([]byte(name))
		assert.Equal(t, want, ok, name)
	}
}

func TestParseName(t *testing.T) {
	both := []Kind{Read, Write}
	for name, tc := range map[string]struct {
		seq  int32
		kind int
		ok   bool
		err  error
	}{
		"1__READ__0000000007":  {7, 0, true, nil},
		"1__WRIT__0000000008":  {8, 1, true, nil},
		"1-lock-0000000009":    {0, 0, false, nil}, // of another kind of lock
		"1__WRIT__8":           {0, 0, false, nil},
		"1__WRIT__x":           {0, 0, false, nil},
		"config":               {0, 0, false, nil},
		"1__WRIT__2147483640":  {0, 0, false, ErrSequenceExhausted},
		"1__WRIT__-2147483648": {0, 0, false, ErrSequenceExhausted}, // the servers' counter has gone round
	} {
		seq, kind, ok, err := parseName([]byte(name), both)
		assert.Equal(t, tc.err, err, name)
		assert.Equal(t, tc.ok, ok, name)
		assert.Equal(t, tc.seq, seq, name)
		assert.Equal(t, tc.kind, kind, name)
	}
}
