package locks

import (
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/recipes/internal/acquire"
)

// queue is a queue of a lock. Package acquire has the order in it (position.go).
type queue struct {
	acquire.Queue
	client *framework.Client
	shared *shared
	tracer monitor.Tracer // of the client, nil for none
	key    lockKey        // of every lock at its path
	// exclusive is whether the node that has the lock keeps out everybody else.
	exclusive bool
}

// lockKey is which lock a hold is of. Lock objects of one client with the same
// path are the same lock; a namespace is part of the path.
type lockKey struct {
	session *session.Session
	path    string // in full
}

// outlived is whether a caller that has waited in a session, 0 for none, must not go on: the
// session has ended, and the client goes on.
func (q *queue) outlived(id int64) bool {
	s := q.Core.Session()
	return q.FailOnLoss && id != 0 && id != s.ID() && s.Life().Err() == nil // in this order: a closed client has no id
}

// init takes in what every lock is made from. After an error the queue has no Core, and the
// path as it was given.
func (q *queue) init(c *framework.Client, path string, opts []Option) error {
	q.Lock = path
	if err := q.apply(opts); err != nil {
		return err
	}
	core, tracer := c.Core(session.Key{})
	full, err := acquire.FullPath(core, path)
	if err != nil {
		return err
	}
	core.Session().KeepReady()
	q.client, q.shared, q.tracer, q.Core, q.Lock, q.Path = c, sharedOf(core.Session()), tracer, core, full, full
	q.key = lockKey{session: core.Session(), path: full}
	return nil
}

// shared is what the locks of one client have in common, through however many
// lock objects.
type shared struct {
	localQueues localQueues
	waitLog     waitLog
}

var sharedSlot = session.Slot[shared]{New: func(s *session.Session) *shared {
	sh := new(shared)
	sh.waitLog.session, sh.waitLog.localQueues = s, &sh.localQueues
	session.Show(s, sh)
	return sh
}}

func sharedOf(s *session.Session) *shared { return sharedSlot.Of(s) }
