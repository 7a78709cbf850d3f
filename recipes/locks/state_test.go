package locks

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
)

// event is something that happens to an ownership. It returns what the state says to it.
type event struct {
	name string
	do   func(*ownershipState) string
}

func says(name string, do func(*ownershipState) any) event {
	return event{name, func(s *ownershipState) string { return fmt.Sprint(do(s)) }}
}

var (
	suspended = says("suspended", func(s *ownershipState) any { return s.become(Held, Uncertain) })
	confirmed = says("confirmed", func(s *ownershipState) any { return s.become(Uncertain, Held) })
	expired   = event{"expired", func(s *ownershipState) string { return fmt.Sprint(s.lose("/l/n", framework.ErrSessionExpired)) }}
	deleted   = event{"deleted", func(s *ownershipState) string { return fmt.Sprint(s.lose("/l/n", session.ErrNodeDeleted)) }}
	released  = says("released", func(s *ownershipState) any { s.release(); return s.is == Released })
	pinned    = says("pinned", func(s *ownershipState) any { return s.pin() })
	written   = says("written", func(s *ownershipState) any { return s.write() })
)

func TestOwnershipState(t *testing.T) {
	const (
		none = "<nil>"
		gone = "lock lost: /l/n: node deleted"
		over = "lock lost: /l/n: zk: session has been expired by the server"
	)
	for name, steps := range map[string]struct {
		events []event
		say    []string // to each
		is     HoldState
		err    string
		kept   bool
	}{
		"begins held":               {is: Held},
		"suspended":                 {[]event{suspended}, []string{"true"}, Uncertain, "", false},
		"suspended twice":           {[]event{suspended, suspended}, []string{"true", "false"}, Uncertain, "", false},
		"confirmed":                 {[]event{suspended, confirmed}, []string{"true", "true"}, Held, "", false},
		"confirmed while held":      {[]event{confirmed}, []string{"false"}, Held, "", false},
		"lost":                      {[]event{expired}, []string{"true true"}, Lost, over, false},
		"lost while uncertain":      {[]event{suspended, expired}, []string{"true", "true true"}, Lost, over, false},
		"lost for the first reason": {[]event{expired, deleted}, []string{"true true", "true false"}, Lost, over, false},
		"lost stays lost":           {[]event{expired, suspended, confirmed, released}, []string{"true true", "false", "false", "false"}, Lost, over, false},
		"released":                  {[]event{released}, []string{"true"}, Released, "released", false},
		"released while uncertain":  {[]event{suspended, released}, []string{"true", "true"}, Released, "released", false},
		"released is not lost":      {[]event{released, expired, deleted}, []string{"true", "false false", "false false"}, Released, "released", false},
		"released stays released":   {[]event{released, suspended, confirmed}, []string{"true", "false", "false"}, Released, "released", false},
		"kept":                      {[]event{pinned}, []string{none}, Held, "", true},
		"kept when lost":            {[]event{expired, pinned}, []string{"true true", over}, Lost, over, false},
		"kept when released":        {[]event{released, pinned}, []string{"true", "released"}, Released, "released", false},
		"written":                   {[]event{written}, []string{none}, Held, "", true},
		"written when lost":         {[]event{expired, written}, []string{"true true", over}, Lost, over, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := ownershipState{is: Held}
			for i, e := range steps.events {
				assert.Equal(t, steps.say[i], e.do(&s), "%d: %s", i, e.name)
			}
			assert.Equal(t, steps.is, s.is)
			assert.Equal(t, steps.is == Lost || steps.is == Released, s.err != nil)
			assert.Equal(t, steps.kept, s.isPinned())
			if steps.err == "" {
				require.NoError(t, s.err)
			} else {
				require.EqualError(t, s.err, steps.err)
			}
		})
	}
}

// No order of events takes an ownership back from a state that is final, or changes why
// it is over.
func TestOwnershipStateIsFinal(t *testing.T) {
	events := []event{suspended, confirmed, expired, deleted, released, pinned, written}
	seen := make(map[HoldState]int)
	var try func(s ownershipState, done []string)
	try = func(s ownershipState, done []string) {
		seen[s.is]++
		require.Equal(t, s.is == Lost, errors.Is(s.err, ErrLockLost), "%v", done)
		require.Equal(t, s.is == Released, errors.Is(s.err, ErrReleased), "%v", done)
		if len(done) == 4 {
			return
		}
		for _, e := range events {
			next := s
			e.do(&next)
			all := append(done[:len(done):len(done)], e.name)
			if s.err != nil {
				require.Equal(t, s.is, next.is, "%v", all)
				require.Equal(t, s.err, next.err, "%v", all)
			}
			try(next, all)
		}
	}
	try(ownershipState{is: Held}, nil)
	for _, is := range []HoldState{Held, Uncertain, Lost, Released} {
		assert.NotZero(t, seen[is], "%v was never reached", is)
	}
}

// Each transaction that was not applied for certain keeps the node from another owner.
func TestNodeStaysWithItsTransactions(t *testing.T) {
	for name, doubt := range map[string][]bool{
		"none":               {},
		"all answered":       {false, false},
		"the first in doubt": {true, false},
		"the last in doubt":  {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := ownershipState{is: Held}
			kept := false
			for range doubt {
				require.NoError(t, s.write())
			}
			for i, d := range doubt {
				assert.True(t, s.isPinned(), "%d are on their way", len(doubt)-i)
				s.wrote(d)
				kept = kept || d
			}
			assert.Equal(t, kept, s.isPinned())
		})
	}
}
