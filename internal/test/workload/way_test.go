package workload_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/test/workload"
	"github.com/paddock-zk/paddock/recipes/locks"
)

var errTaken, errInside = errors.New("taken by others"), errors.New("inside")

// lock is known by its name. The lock without a name is taken by others.
type lock string

func (lock) Acquire(context.Context) (*locks.Hold, error) { return nil, errTaken }

func (lock) TryAcquire(context.Context, time.Duration) (*locks.Hold, error) {
	return nil, locks.ErrNotAcquired
}

// steps is what an actor does: +a takes a, +a(1) takes a with the context of the first
// hold, !2 is inside with the second hold, -2 gives that back.
type steps struct {
	holds int
	told  []string
}

func (s *steps) tell(what ...any) { s.told = append(s.told, fmt.Sprint(what...)) }

// hold is one of a story, by its number.
type hold struct {
	*steps
	number int
}

// from is the key of a hold's number in its context.
type from struct{}

func (h hold) Context() context.Context {
	return context.WithValue(context.Background(), from{}, h.number)
}

func (h hold) Release() error { h.tell("-", h.number); return nil }

func (s *steps) take(ctx context.Context, step workload.Step) (workload.Held, error) {
	name := "both"
	if one, ok := step.Lock.(lock); ok {
		if one == "" {
			held, err := step.Take(ctx)
			return held, err
		}
		name = string(one)
	}
	if number := ctx.Value(from{}); number != nil {
		name += fmt.Sprintf("(%d)", number)
	}
	s.tell("+", name)
	s.holds++
	return hold{s, s.holds}, nil
}

func TestOnce(t *testing.T) {
	always := func() bool { return true }
	soon := func(int) time.Duration { return 0 }
	fails := func(workload.Held) error { return errInside }
	const a, b, gone lock = "a", "b", ""
	for _, tc := range []struct {
		name string
		way  workload.Way
		all  []locks.Lock
		how  workload.How
		want string
		had  bool
		err  error
	}{
		{"one", workload.Nested, []locks.Lock{a}, workload.How{}, "+a !1 -1", true, nil},
		{"nested", workload.Nested, []locks.Lock{a, b}, workload.How{OuterFirst: always}, "+a +b !2 -2 -1", true, nil},
		{"nested, chained", workload.Nested, []locks.Lock{a, b}, workload.How{Chained: true}, "+a +b(1) !2 -2 -1", true, nil},
		{"nested, the second is taken", workload.Nested, []locks.Lock{a, gone}, workload.How{}, "+a -1", false, errTaken},
		{"nested, fails inside", workload.Nested, []locks.Lock{a, b}, workload.How{Inside: fails}, "+a +b -2 -1", true, errInside},
		{"nested, gives up", workload.Nested, []locks.Lock{a, gone}, workload.How{Wait: soon}, "+a -1", false, nil},
		{"multi", workload.Multi, []locks.Lock{a, b}, workload.How{}, "+both !1 -1", true, nil},
		{"ordered", workload.Ordered, []locks.Lock{a, b}, workload.How{}, "+both !1 -1", true, nil},
		{"re-entry", workload.Reentry, []locks.Lock{a}, workload.How{}, "+a +a(1) !2 -2 -1", true, nil},
		{"re-entry, outer first", workload.Reentry, []locks.Lock{a}, workload.How{OuterFirst: always}, "+a +a(1) !2 -1 -2", true, nil},
		{"re-entry of what is taken", workload.Reentry, []locks.Lock{gone}, workload.How{}, "", false, errTaken},
		{"downgrade", workload.Downgrade, []locks.Lock{a, b}, workload.How{}, "+a !1 +b(1) -1 !2 -2", true, nil},
		{"downgrade, the second is taken", workload.Downgrade, []locks.Lock{a, gone}, workload.How{}, "+a !1 -1", false, errTaken},
		{"downgrade, fails inside", workload.Downgrade, []locks.Lock{a, b}, workload.How{Inside: fails}, "+a -1", false, errInside},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s steps
			tc.how.Take = s.take
			if tc.how.Inside == nil {
				tc.how.Inside = func(last workload.Held) error { s.tell("!", last.(hold).number); return nil }
			}
			had, err := tc.how.Once(t.Context(), tc.way, tc.all...)
			assert.Equal(t, tc.want, strings.Join(s.told, " "))
			assert.ErrorIs(t, err, tc.err)
			assert.Equal(t, tc.had, had)
		})
	}
}
