//go:build realzk && !linux

package robustness

import "time"

// stamp is the time on a clock that all processes of this machine share, in
// nanoseconds. Nobody may set the clock meanwhile.
func stamp() int64 { return time.Now().UnixNano() }
