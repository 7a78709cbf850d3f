package conformance

import (
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
)

// keepOutages has a node that is kept through a cut, a deletion and the end of a session,
// first beside a node of another session.
func keepOutages(e *env) {
	c, other := e.client(), e.client()
	before, err := other.Keep(e.soon(), "/a", nil)
	require.NoError(e, err)
	kept := make(chan *framework.KeptNode, 1)
	go func() {
		k, err := c.Keep(e.soon(), "/a", nil)
		if err != nil {
			e.Errorf("%v", err)
		}
		kept <- k
	}()
	require.NoError(e, before.Remove(e.soon()))
	k := <-kept
	madeAfter := func(czxid int64) (made int64) {
		kit.Eventually(e, "the node is there", func() error {
			there, now, err := other.Exists(e.soon(), "/a")
			switch {
			case err != nil:
				return err
			case !there || now.EphemeralOwner != c.SessionID() || now.Czxid <= czxid:
				return errors.New("it is not")
			}
			made = now.Czxid
			return k.Err()
		})
		return made
	}
	made := madeAfter(0)
	c.net.CutAll()
	made = madeAfter(made - 1)
	require.NoError(e, other.Delete(e.soon(), "/a", framework.AnyVersion))
	made = madeAfter(made)
	c.expire()
	madeAfter(made)
	require.NoError(e, k.Remove(e.soon()))
	there, _, err := other.current().Exists(e.soon(), "/a")
	require.NoError(e, err)
	require.False(e, there)
}
