package locks

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGroup_CommonToken(t *testing.T) {
	for want, tokens := range map[int64][]int64{7: {7}, 8: {8, 8, 8}, 0: {8, 8, 9}} {
		var members []*Hold
		for _, token := range tokens {
			o := owned(lockKey{})
			o.token = token
			members = append(members, heldUnder(t.Context(), t, o))
		}
		assert.Equal(t, want, commonToken(members), tokens)
	}
}

// The least certain member decides, and one that was given back early does not count.
func TestGroup_Worst(t *testing.T) {
	errGone := errors.New("gone")
	states := map[HoldState]func(h *Hold){
		Held:      func(*Hold) {},
		Uncertain: func(h *Hold) { h.ownership.become(Held, Uncertain) },
		Lost:      func(h *Hold) { h.ownership.lose(errGone) },
		Released:  func(h *Hold) { _ = h.Release() },
	}
	for _, tc := range []struct {
		members []HoldState
		want    HoldState
	}{
		{[]HoldState{Held, Held}, Held},
		{[]HoldState{Held, Uncertain, Held}, Uncertain},
		{[]HoldState{Uncertain, Lost}, Lost},
		{[]HoldState{Lost, Uncertain}, Lost},
		{[]HoldState{Held, Released}, Held},
		{[]HoldState{Released, Released}, Held},
	} {
		var members []*Hold
		for _, state := range tc.members {
			h, _ := NewHold(t.Context(), nil)
			states[state](h)
			members = append(members, h)
		}
		state, err := worst(members)
		assert.Equal(t, tc.want, state, tc.members)
		if tc.want == Lost {
			assert.ErrorIs(t, err, errGone)
		} else {
			assert.NoError(t, err)
		}
	}
}

func TestGivingBack_Err(t *testing.T) {
	errOne, errOther := errors.New("one"), errors.New("another")
	pending := fmt.Errorf("release /l: %w", ErrReleasePending)
	for name, tc := range map[string]struct{ took, want []error }{
		"nothing":              {nil, nil},
		"all well":             {[]error{nil, nil}, nil},
		"released before":      {[]error{nil, ErrReleased}, nil},
		"one pending":          {[]error{nil, pending}, []error{ErrReleasePending}},
		"one failed":           {[]error{errOne, nil}, []error{errOne}},
		"two failed":           {[]error{errOne, errOther}, []error{errOne, errOther}},
		"failed and pending":   {[]error{pending, errOne}, []error{errOne}},
		"a lost one is a fail": {[]error{ErrLockLost}, []error{ErrLockLost}},
	} {
		var g givingBack
		for _, err := range tc.took {
			g.take(err)
		}
		err := g.err()
		if tc.want == nil {
			assert.NoError(t, err, name)
		}
		for _, want := range tc.want {
			assert.ErrorIs(t, err, want, name)
		}
		assert.Equal(t, name == "one pending", errors.Is(err, ErrReleasePending), name)
	}
	for _, err := range []error{nil, ErrLockLost, pending} {
		assert.NoError(t, refusals(err), "the lock is given up anyway")
	}
	assert.Equal(t, errOne, refusals(errOne))
}

// A group gives its members back in reverse.
func TestGroup_GivesBackInReverse(t *testing.T) {
	var given []string
	member := func(name string) *Hold {
		h, _ := NewHold(t.Context(), func() error {
			given = append(given, name)
			return nil
		})
		return h
	}
	require.NoError(t, releaseAll([]*Hold{member("a"), member("b")}, nil))
	assert.Equal(t, []string{"b", "a"}, given, "in reverse")

	h, err := newGroup(t.Context(), []*Hold{member("c"), member("d")})
	require.NoError(t, err)
	given = nil
	require.NoError(t, h.Members()[0].Release(), "one of them early")
	require.NoError(t, h.Release())
	assert.Equal(t, []string{"c", "d"}, given)
}
