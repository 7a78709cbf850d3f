package session

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

func TestError_OfACode(t *testing.T) {
	assert.NoError(t, Error(wire.CodeOK))
	for code, want := range map[wire.Code]error{
		wire.CodeNoNode: zk.ErrNoNode, wire.CodeNodeExists: zk.ErrNodeExists, wire.CodeBadVersion: zk.ErrBadVersion, wire.CodeNotEmpty: zk.ErrNotEmpty,
		wire.CodeNoAuth: zk.ErrNoAuth, wire.CodeInvalidACL: zk.ErrInvalidACL, wire.CodeSessionExpired: zk.ErrSessionExpired, wire.CodeSessionMoved: zk.ErrSessionMoved,
	} {
		assert.Equal(t, want, Error(code), "as go-zookeeper has it")
	}
	var code *CodeError
	old := Error(wire.CodeUnimplemented)
	assert.ErrorAs(t, old, &code)
	assert.ErrorIs(t, old, ErrUnsupported)
	assert.ErrorContains(t, old, "older than ZooKeeper 3.6")
	other := Error(-9999)
	assert.ErrorAs(t, other, &code)
	assert.Equal(t, wire.Code(-9999), code.Code)
	assert.NotErrorIs(t, other, ErrUnsupported)
	assert.ErrorContains(t, other, "-9999")
}

// Only a write that may have reached a server can have been applied.
func TestLostError(t *testing.T) {
	cause := errors.New("cut")
	for name, tc := range map[string]struct {
		sent, write bool
		want        error
	}{
		"a write that was sent":     {true, true, ErrOutcomeUnknown},
		"a write that was not sent": {false, true, ErrNotConnected},
		"a read that was sent":      {true, false, ErrNotConnected},
		"a read that was not sent":  {false, false, ErrNotConnected},
	} {
		err := lostError(&transport.LostError{Sent: tc.sent, Cause: cause}, tc.write)
		assert.ErrorIs(t, err, tc.want, name)
		assert.Equal(t, tc.sent && tc.write, errors.Is(err, ErrOutcomeUnknown), name)
		assert.ErrorIs(t, err, cause, name)
	}
}

// A refusal that came after the loss does not say that nothing was applied.
func TestUnsettledError_MatchesNoRefusal(t *testing.T) {
	err := error(&UnsettledError{Why: "its session is over", Refused: zk.ErrNoNode})
	assert.EqualError(t, err, "outcome unknown: its session is over: zk: node does not exist")
	assert.ErrorIs(t, err, ErrOutcomeUnknown)
	assert.NotErrorIs(t, err, zk.ErrNoNode)
	assert.EqualError(t, &UnsettledError{Why: "why"}, "outcome unknown: why")
}
