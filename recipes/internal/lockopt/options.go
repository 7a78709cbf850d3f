// Package lockopt has the options of locks as a value. So recipes that are built on locks
// can set options that users cannot.
package lockopt

import (
	"time"

	"github.com/paddock-zk/paddock/recipes/internal/znode"
)

// Options are how one lock object acquires.
type Options struct {
	Kind           znode.Kind // of a mutex's nodes
	Recipe         string     // what a mutex is called in logs and by tracers, "" for its kind
	Data           []byte     // of the nodes, with HasData
	HasData        bool       // else they are made with the client's default
	EndOnSuspended bool
	FailOnLoss     bool // of the session, instead of queueing again
	Revocable      bool
	ReleaseWait    time.Duration
	Handovers      int           // of one node among goroutines, in a row
	Burst          time.Duration // for which the lock is handed over however often that is
}

// Defaults are the options of a lock that has none of its own.
func Defaults() Options {
	return Options{Kind: znode.Lock, ReleaseWait: time.Second, Handovers: 16, Burst: 10 * time.Millisecond}
}

// Set changes options.
type Set func(*Options)

// Apply changes options.
func (s Set) Apply(o *Options) { s(o) }
