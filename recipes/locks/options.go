package locks

import (
	"time"

	"github.com/paddock-zk/paddock/recipes/internal/lockopt"
)

// Option changes how one lock object acquires. Options are made by the functions of
// this package.
type Option interface{ Apply(*lockopt.Options) }

func optionsOf(opts []Option) (lockopt.Options, bool) {
	o := lockopt.Defaults()
	for _, opt := range opts {
		if opt == nil {
			return o, false
		}
		opt.Apply(&o)
	}
	return o, true
}

// NodeData is written into the lock's node for others to read. It is copied.
// Defaults to framework.Config.DefaultData.
func NodeData(data []byte) Option {
	kept := append([]byte{}, data...)
	return lockopt.Set(func(o *lockopt.Options) { o.Data, o.HasData = kept, true })
}

// EndOnSuspended ends a hold as lost as soon as it is uncertain, that is when
// the connection is suspended, and gives the lock back once it can.
func EndOnSuspended() Option {
	return lockopt.Set(func(o *lockopt.Options) { o.EndOnSuspended = true })
}

// FailOnSessionLoss makes a waiter whose session expires return
// framework.ErrSessionExpired. By default it queues again, at the end.
func FailOnSessionLoss() Option { return lockopt.Set(func(o *lockopt.Options) { o.FailOnLoss = true }) }

// ReleaseWait bounds how long Release waits for the servers. Defaults to 1
// second; 0 does not wait.
func ReleaseWait(d time.Duration) Option {
	return lockopt.Set(func(o *lockopt.Options) { o.ReleaseWait = d })
}

// Revocable lets others ask for the lock back, see AttemptRevoke and
// Hold.Revoked. NodeData is not written then, as in Curator.
func Revocable() Option { return lockopt.Set(func(o *lockopt.Options) { o.Revocable = true }) }

// LocalHandovers bounds how often in a row the lock passes between goroutines
// of this client, without asking the servers, before others get their turn; 0
// switches it off. The default is 16 times, or for 10 ms if that is longer: on a
// lock that is held for a few microseconds, a round trip after each 16 would be
// most of the time. It is for mutexes and write sides.
//
// Goroutines of one client that wait for one lock stand in one local queue behind one
// node, through however many lock objects, as long as these would write the
// same NodeData and their callers come from the same holds, if any. Release
// hands the lock to the next in the local queue and returns at once. Behind the bound, or a
// second after the node was first in its queue, it goes back to the servers, and
// the local queue begins again at the end of the queue.
//
// It also goes back to the servers, rather than to the next in the local queue, if a
// MultiLock was seen in the queue, which then comes after one holder; if the hold
// has shown its FencingToken, so that no two show the same; if a transaction of
// it is on its way, or was and has no known outcome; if a read side was taken
// under it, or a MultiLock; if it is uncertain, or nothing has confirmed the
// session lately; and if it is Revocable.
//
// With 0 each goroutine has a node of its own, and waits in the order of the
// servers.
func LocalHandovers(most int) Option {
	return lockopt.Set(func(o *lockopt.Options) { o.Handovers, o.Burst = most, 0 })
}

// LookAhead makes hand-offs faster behind a far network: a waiter gets the lock
// with the event of its predecessor's release, half a round trip after the
// servers have applied it, instead of listing the queue first. Who came second in
// the queue does so in any case; with LookAhead, everybody. A hand-off costs two
// watches and an event more, at a time when nobody waits for them, and each
// release tells two waiters instead of one. It is for mutexes, and without effect
// on others.
func LookAhead() Option { return lockopt.Set(func(o *lockopt.Options) { o.LookAhead = true }) }
