package recipes

import "time"

// Option changes how one lock object acquires.
type Option interface{ apply(*options) }

type options struct {
	data           []byte
	hasData        bool
	endOnSuspended bool
	failOnLoss     bool
	releaseWait    time.Duration
	revocable      bool
	lookAhead      bool
}

const defaultReleaseWait = time.Second

type option func(*options)

func (f option) apply(o *options) { f(o) }

func optionsOf(opts []Option) (options, bool) {
	o := options{releaseWait: defaultReleaseWait}
	for _, opt := range opts {
		if opt == nil {
			return o, false
		}
		opt.apply(&o)
	}
	return o, true
}

// NodeData is written into the lock's node for others to read. It is copied.
// Defaults to framework.Config.DefaultData.
func NodeData(data []byte) Option {
	kept := append([]byte{}, data...)
	return option(func(o *options) { o.data, o.hasData = kept, true })
}

// EndOnSuspended ends a hold as lost as soon as it is uncertain, that is when
// the connection is suspended, and gives the lock back once it can.
func EndOnSuspended() Option { return option(func(o *options) { o.endOnSuspended = true }) }

// FailOnSessionLoss makes a waiter whose session expires return
// framework.ErrSessionExpired. By default it queues again, at the end.
func FailOnSessionLoss() Option { return option(func(o *options) { o.failOnLoss = true }) }

// ReleaseWait bounds how long Release waits for the servers. Defaults to 1
// second; 0 does not wait.
func ReleaseWait(d time.Duration) Option { return option(func(o *options) { o.releaseWait = d }) }

// Revocable lets others ask for the lock back, see AttemptRevoke and
// Hold.Revoked. NodeData is not written then, as in Curator.
func Revocable() Option { return option(func(o *options) { o.revocable = true }) }
