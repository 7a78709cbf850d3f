package locks

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Who goes on with the attempt of another one has waited in a session of its own. If that ends
// at this moment, the attempt, which was in none, does not go on in the next one.
func TestAdoptedAttemptKeepsToTheSessionOfTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		c := connectInMemory(t, srv)
		defer func() { require.NoError(t, c.Close()) }()
		waitedIn := c.SessionID()
		down := srv.On(zktest.Match{Op: "connect"}, zktest.CutBefore())
		srv.DisconnectAll()
		time.Sleep(time.Minute)
		require.Zero(t, c.SessionID())
		left := NewInterProcessMutex(c, "/l").queue.newAttempt(t.Context(), nil)
		time.AfterFunc(time.Second, down.Remove)
		o, err := NewInterProcessMutex(c, "/l", FailOnSessionLoss()).queue.ask(t.Context(), nil, left, false, waitedIn)
		require.ErrorIs(t, err, framework.ErrSessionExpired)
		require.Nil(t, o)
	})
}
