//go:build unix

package realzk

import (
	"context"
	"strings"
	"time"
)

// TB is the part of testing.TB that StartT uses.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// startLimit bounds StartT; servers need about a second or two.
const startLimit = time.Minute

// StartT is Start for a test. It fails the test if the servers do not start, and closes
// them when the test has ended. If the test has failed, it shows the end of their logs.
func StartT(tb TB, opts Options) *Ensemble {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	e, err := Start(ctx, opts)
	if err != nil {
		tb.Fatalf("start ZooKeeper: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			var logs strings.Builder
			e.WriteLogs(&logs)
			tb.Logf("%s", logs.String())
		}
		if err := e.Close(); err != nil {
			tb.Errorf("close ZooKeeper: %v", err)
		}
	})
	return e
}
