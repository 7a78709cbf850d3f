package acquire

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/internal/session/nodename"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/recipes/internal/znode"
	zktest "github.com/paddock-zk/paddock/testing"
)

// bareCore is a client that only has a session.
type bareCore struct {
	session.Core
	session *session.Session
}

func (c bareCore) Session() *session.Session { return c.session }

// A MultiLock sets its watches, and the connection is lost before that or meanwhile. None
// may count as set: a queue whose watch is not set again is waited for without end.
func TestMulti_CountsNoLostWatch(t *testing.T) {
	const members = 3
	for lost := range members + 1 { // at which request; 0 is before the first
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			srv := zktest.Start(t)
			s, err := session.Open(session.Config{
				Transport: transport.Config{
					Servers: []string{srv.ConnectString()}, SessionTimeout: 10 * time.Second, ConnectTimeout: time.Second,
					MaxReply: 1 << 20, MaxRequest: 1 << 20, Dial: srv.DialContext,
				},
				CloseTimeout: time.Second, Logger: zap.NewNop(),
			})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, s.Close()) })
			c, err := s.AwaitConn(t.Context(), true)
			require.NoError(t, err)

			var locks []Member
			for i := range members {
				locks = append(locks, Member{Queue: &Queue{Core: bareCore{session: s}, Path: fmt.Sprint("/l", i), Kind: znode.Lock, Kinds: []znode.Kind{znode.Lock}, Rule: znode.Exclusive}})
			}
			a := NewMulti(locks, false, nodename.Owner{}, nil)
			for _, m := range a.members { // behind another node in each queue
				m.phase, m.path, m.snapshot, m.predecessor = queued, m.queue.Path+"/x-lock-0000000002", new(znode.Snapshot), "x-lock-0000000001"
				require.True(t, m.waits())
			}
			if lost == 0 {
				c.Kill(errors.New("cut"))
			} else {
				srv.On(zktest.Match{Op: "getData", Nth: lost}, zktest.CutBefore())
			}
			_, err = a.watch(t.Context(), c, true)
			require.Error(t, err)
			for i, m := range a.members {
				assert.Zero(t, m.watch, "member %d", i)
			}
		})
	}
}
