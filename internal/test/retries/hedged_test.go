package retries

import (
	"context"
	"time"
)

// task own-hedge
func hedged(ctx context.Context, read func(context.Context) (string, error), after time.Duration) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		value string
		err   error
	}
	answers := make(chan answer, 2)
	call := func() {
		value, err := read(ctx)
		answers <- answer{value, err}
	}
	go call()
	running, timer := 1, time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case a := <-answers:
			if running--; a.err == nil || running == 0 {
				return a.value, a.err
			}
		case <-timer.C:
			running++
			go call()
		}
	}
}

// end
