package retry

import (
	"context"
	"time"
)

// Attempt is what a hook sees.
type Attempt struct {
	Policy  string        // the policy's name
	Number  int           // 1 for the first
	Err     error         // why it failed; in OnDone what Do returns
	Delay   time.Duration // until the next one; 0 in OnDone
	Elapsed time.Duration // since the first began
}

type hook = func(ctx context.Context, a Attempt)
