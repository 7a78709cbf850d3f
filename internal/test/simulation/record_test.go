package simulation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// lockOf is the lock that a contender's node belongs to.
func lockOf(node string) string { return strings.TrimSuffix(path.Dir(node), "/leases") }

// place fills in what a node's path says.
func place(h *check.Hold) {
	h.Lock = lockOf(h.Node)
	switch {
	case strings.HasSuffix(path.Dir(h.Node), "/leases"):
		h.Mode = check.Lease
		if h.Lock == "/x" {
			h.Mode = check.Alone
		}
	case strings.Contains(h.Node, "__READ__"):
		h.Mode = check.Shared
	default:
		h.Mode = check.Alone
	}
}

// lockName says what a lock is.
func lockName(l locks.Lock) string { return strings.TrimPrefix(fmt.Sprintf("%T", l), "*recipes.") }

// fail adds a violation that no checker can see later.
func (w *world) fail(judgeName, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = append(w.found, check.Violation{Checker: judgeName, Text: fmt.Sprintf(format, args...)})
	w.tellLocked("checker", format, args...)
}

// traceLine is one event of a story.
type traceLine struct {
	at   time.Duration
	who  string
	what string
}

func (l traceLine) String() string {
	return fmt.Sprintf("%14.9f %-8s %s", l.at.Seconds(), l.who, l.what)
}

// chronicle is the story and what the servers did, in order.
func (w *world) chronicle() []string {
	all := slices.Clone(w.trace)
	for _, txn := range w.cluster.Transactions() {
		what := fmt.Sprintf("%#x %s by %#x:", txn.Zxid, txn.Op, txn.Session)
		if txn.Refused {
			what += " refused"
		}
		for _, c := range txn.Changes {
			what += fmt.Sprintf(" %v %s", c.Kind, c.Path)
			if c.Kind == zktest.DataSet {
				what += fmt.Sprintf(" to %q", c.Data)
			}
		}
		all = append(all, traceLine{txn.At, "servers", what})
	}
	slices.SortStableFunc(all, func(a, b traceLine) int { return cmp.Compare(a.at, b.at) })
	story := make([]string, len(all))
	for i, l := range all {
		story[i] = l.String()
	}
	return story
}

// digest is the same for two stories that differ only in the order of what
// different actors did at one instant.
func digest(story []string) string {
	sorted := slices.Clone(story)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(a[:whoEnds], b[:whoEnds]) })
	h := sha256.New()
	for _, line := range sorted {
		h.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// whoEnds is where the time and the name end in a line.
const whoEnds = 14 + 1 + 8

// words are what errors are called; the first that matches counts.
var words = []struct {
	word  string
	error error
}{
	{"fenced", locks.ErrFenced}, {"lock lost", locks.ErrLockLost}, {"outcome unknown", framework.ErrOutcomeUnknown},
	{"not acquired", locks.ErrNotAcquired}, {"not connected", framework.ErrNotConnected}, {"closed", framework.ErrClosed},
	{"deadlock", locks.ErrDeadlock}, {"cancelled", errCancelled}, {"over", errOver}, {"over", context.Canceled},
	{"released", locks.ErrReleased}, {"stepped down", leader.ErrSteppedDown},
}

// classify puts an error into one word.
func classify(err error) string {
	for _, w := range words {
		if errors.Is(err, w.error) {
			return w.word
		}
	}
	return err.Error()
}
