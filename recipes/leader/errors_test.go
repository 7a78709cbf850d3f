package leader

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestErrorsSayWhatHappened(t *testing.T) {
	why := errors.New("disk full")
	failed := &FunctionError{Path: "/app", Number: 0x2a, Err: why}
	assert.EqualError(t, failed, "leader function at /app, term 42: disk full")
	assert.ErrorIs(t, failed, why)
	overran := &OverrunError{Path: "/app", Number: 0x2a, Limit: time.Second, Cause: context.Canceled}
	assert.EqualError(t, overran, "leader function at /app, term 42: still runs 1s after its context ended (context canceled)")
	assert.ErrorIs(t, overran, context.Canceled)
}

func TestObservationsAreReadable(t *testing.T) {
	leads := Participant{ID: "ann", Leads: true, Path: "/app/latch-1", Session: 0x2a}
	waits := Participant{ID: "bob", Path: "/app/latch-2", Session: 0x2b}
	assert.Equal(t, "not known", Observation{}.String())
	assert.Equal(t, "nobody leads", Observation{Known: true}.String())
	assert.Equal(t, "ann leads with /app/latch-1 of session 0x2a", Observation{Known: true, Leader: &leads}.String())
	assert.Equal(t, "bob stands with /app/latch-2 of session 0x2b", waits.String())
}
