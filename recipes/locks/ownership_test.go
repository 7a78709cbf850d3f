package locks

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/session"
)

// event is something that happens to an ownership.
type event struct {
	name string
	do   func(*ownership) error
}

var (
	suspended = event{"suspended", func(o *ownership) error { o.become(Held, Uncertain); return nil }}
	confirmed = event{"confirmed", func(o *ownership) error { o.become(Uncertain, Held); return nil }}
	expired   = event{"expired", func(o *ownership) error { o.lose(framework.ErrSessionExpired); return nil }}
	deleted   = event{"deleted", func(o *ownership) error { o.lose(session.ErrNodeDeleted); return nil }}
	released  = event{"released", func(o *ownership) error { _, lost := o.leave(nil); return lost }}
	pinned    = event{"pinned", (*ownership).pin}
	written   = event{"written", (*ownership).write}
)

func TestOwnershipState(t *testing.T) {
	const (
		none = ""
		over = "lock lost: zk: session has been expired by the server"
	)
	for name, steps := range map[string]struct {
		events []event
		last   string // what the last one says
		is     HoldState
		err    string
		kept   bool
	}{
		"begins held":               {nil, none, Held, none, false},
		"suspended":                 {[]event{suspended}, none, Uncertain, none, false},
		"suspended twice":           {[]event{suspended, suspended}, none, Uncertain, none, false},
		"confirmed":                 {[]event{suspended, confirmed}, none, Held, none, false},
		"confirmed while held":      {[]event{confirmed}, none, Held, none, false},
		"lost":                      {[]event{expired}, none, Lost, over, false},
		"lost while uncertain":      {[]event{suspended, expired}, none, Lost, over, false},
		"lost for the first reason": {[]event{expired, deleted}, none, Lost, over, false},
		"lost stays lost":           {[]event{expired, suspended, confirmed, released}, over, Lost, over, false},
		"released":                  {[]event{released}, none, Released, "released", false},
		"released while uncertain":  {[]event{suspended, released}, none, Released, "released", false},
		"released is not lost":      {[]event{released, expired, deleted}, none, Released, "released", false},
		"released stays released":   {[]event{released, suspended, confirmed}, none, Released, "released", false},
		"kept":                      {[]event{pinned}, none, Held, none, true},
		"kept when lost":            {[]event{expired, pinned}, over, Lost, over, false},
		"kept when released":        {[]event{released, pinned}, "released", Released, "released", false},
		"written":                   {[]event{written}, none, Held, none, true},
		"written when lost":         {[]event{expired, written}, over, Lost, over, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := func(err error) string {
				if err == nil {
					return none
				}
				return err.Error()
			}
			o, last := &ownership{state: Held}, error(nil)
			for _, e := range steps.events {
				last = e.do(o)
			}
			assert.Equal(t, steps.last, text(last))
			assert.Equal(t, steps.is, o.state)
			assert.Equal(t, steps.err, text(o.err))
			assert.Equal(t, steps.kept, o.isPinned())
		})
	}
}

// No order of events takes an ownership back from a state that is final, or changes why
// it is over.
func TestOwnershipStateIsFinal(t *testing.T) {
	events := []event{suspended, confirmed, expired, deleted, released, pinned, written}
	seen := make(map[HoldState]int)
	var try func(done []event)
	try = func(done []event) {
		o := &ownership{state: Held}
		for _, e := range done {
			is, why := o.state, o.err
			_ = e.do(o)
			if why != nil {
				require.Equal(t, is, o.state, "%v", done)
				require.Equal(t, why, o.err, "%v", done)
			}
		}
		seen[o.state]++
		require.Equal(t, o.state == Lost, errors.Is(o.err, ErrLockLost), "%v", done)
		require.Equal(t, o.state == Released, errors.Is(o.err, ErrReleased), "%v", done)
		require.Equal(t, o.err != nil, o.ended.Load(), "%v", done)
		if len(done) == 4 {
			return
		}
		for _, e := range events {
			try(append(done[:len(done):len(done)], e))
		}
	}
	try(nil)
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
			o := &ownership{state: Held}
			kept := false
			for range doubt {
				require.NoError(t, o.write())
			}
			for i, d := range doubt {
				assert.True(t, o.isPinned(), "%d are on their way", len(doubt)-i)
				o.wrote(d)
				kept = kept || d
			}
			assert.Equal(t, kept, o.isPinned())
		})
	}
}
