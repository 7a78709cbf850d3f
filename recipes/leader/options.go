package leader

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"time"
	"unicode/utf8"

	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
)

// Option changes how one Latch or Selector stands. Options are made by the functions of
// this package.
type Option interface{ apply(*options) error }

type option func(*options) error

func (o option) apply(opts *options) error { return o(opts) }

// options are how an election is stood in.
type options struct {
	id             string
	releaseWait    time.Duration
	endOnSuspended bool
	grace          time.Duration
	backOff        retry.Policy
	check          func(context.Context) error // nil for none
	checkEvery     time.Duration
}

func optionsOf(given []Option) (options, error) {
	o := options{
		releaseWait: time.Second,
		grace:       10 * time.Second,
		backOff:     retry.BoundedExponentialBackoff(time.Second, time.Minute, math.MaxInt),
	}
	for _, opt := range given {
		if opt == nil {
			return o, fmt.Errorf("%w: option is nil", locks.ErrInvalidLock)
		}
		if err := opt.apply(&o); err != nil {
			return o, fmt.Errorf("%w: %w", locks.ErrInvalidLock, err)
		}
	}
	if o.id == "" {
		o.id = defaultID()
	}
	return o, nil
}

// defaultID tells two processes of one host apart, and two candidates of one process.
func defaultID() string {
	host, err := os.Hostname()
	if err != nil || !utf8.ValidString(host) {
		host = "unknown"
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(random[:]))
}

// ID is what others know the candidate by. It is the data of its node, as in Curator,
// and must be UTF-8 text that is not empty. Defaults to the host's name, the number of
// the process and eight random digits.
func ID(id string) Option {
	return option(func(o *options) error {
		switch {
		case id == "":
			return errors.New("ID is empty: leave the option out to get one of its own")
		case !utf8.ValidString(id):
			return fmt.Errorf("ID %q is not UTF-8 text", id)
		}
		o.id = id
		return nil
	})
}

// EndOnSuspended ends the context of a term as soon as the connection is suspended, with
// a cause that matches ErrSteppedDown and framework.ErrNotConnected. By default a term
// goes on while it is uncertain: it ends only when another candidate may lead.
//
// The candidate's node stays until the term is released. Run and Terms stand again after
// that, at the end.
//
// Source: Curator's StandardConnectionStateErrorPolicy. Its LeaderLatch keeps its place
// and may lead again with the same node. Here a term that has ended stays so.
func EndOnSuspended() Option {
	return option(func(o *options) error { o.endOnSuspended = true; return nil })
}

// ReleaseWait bounds how long the end of a term waits for the servers to delete the
// node. After that the deletion goes on in the background. Defaults to 1 second; 0
// does not wait.
func ReleaseWait(d time.Duration) Option {
	return option(func(o *options) error {
		if d < 0 {
			return fmt.Errorf("ReleaseWait is %v: it must not be negative", d)
		}
		o.releaseWait = d
		return nil
	})
}

// Grace is how long a function that Run called may go on after the context of its term
// has ended, before Run reports an *OverrunError. Defaults to 10 seconds.
func Grace(d time.Duration) Option {
	return option(func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("Grace is %v: it must be above 0", d)
		}
		o.grace = d
		return hasUnit("Grace is", d)
	})
}

// BackOff says how long Run waits before it stands again after a failure of the
// function. Failures in successive terms count as retries of the policy. Once the policy
// gives up, Run returns the function's error. Only delays and limits of the policy
// count, not its classifiers. By default the delay is 1 second at first and grows, at
// random, up to 1 minute; Run never gives up.
func BackOff(policy retry.Policy) Option {
	return option(func(o *options) error {
		if policy.IsZero() {
			return errors.New("BackOff is the zero policy: use retry.None to end Run with the first failure")
		}
		o.backOff = policy
		if err := policy.Validate(); err != nil {
			return fmt.Errorf("BackOff: %w", err)
		}
		return nil
	})
}

// HealthCheck has Run and Terms call check
//
//   - before the candidate stands: it does not stand until check has succeeded;
//   - when it is elected, before the term begins: if check fails, the candidate gives its
//     node back, and another one leads. Nobody leads while check runs;
//   - while it leads, with a pause of every between two calls: if check fails, the
//     term's context ends with a cause that matches ErrSteppedDown, ErrUnhealthy and the
//     error.
//
// A candidate whose check has failed stands again, at the end, once check succeeds.
// While the candidate waits in the queue, nobody calls check.
//
// The context of check ends after every, or with the term. A check fails if it has not
// returned after every. The term then ends
// without waiting for it. Two calls of check never overlap within one Run: the candidate
// does not stand again, and Run does not return, before check has returned.
func HealthCheck(every time.Duration, check func(ctx context.Context) error) Option {
	return option(func(o *options) error {
		switch {
		case check == nil:
			return errors.New("HealthCheck has no check")
		case every <= 0:
			return fmt.Errorf("HealthCheck is to be called every %v: it must be above 0", every)
		}
		o.check, o.checkEvery = check, every
		return hasUnit("HealthCheck is to be called every", every)
	})
}

// hasUnit refuses a number without a unit: in 5 ns no check returns, and no function ends.
func hasUnit(what string, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("%s %v: it must be a millisecond at least (a number alone counts nanoseconds)", what, d)
	}
	return nil
}
