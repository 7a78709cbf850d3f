package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/paddock-zk/paddock/retry"
)

func BenchmarkDo(b *testing.B) {
	ctx := b.Context()
	plain := retry.ExponentialBackoff(time.Millisecond, 3)
	failure := errors.New("failure")
	succeed := func(context.Context) error { return nil }
	cases := []struct {
		name   string
		policy retry.Policy
		op     func(context.Context) error
	}{
		{"success", plain, succeed},
		{"success with budget", plain.WithBudget(retry.NewBudget(10, 0.1)), succeed},
		{"success with attempt timeout", plain.WithAttemptTimeout(time.Minute), succeed},
		{"one failure", retry.None(), func(context.Context) error { return failure }},
		{"one retry", retry.NTimes(1, 0), func(context.Context) error { return failure }},
	}
	for _, tc := range cases {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = retry.Do(ctx, tc.policy, tc.op)
			}
		})
	}
}

func BenchmarkDoValue(b *testing.B) {
	ctx, p := b.Context(), retry.ExponentialBackoff(time.Millisecond, 3)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = retry.DoValue(ctx, p, func(context.Context) (int, error) { return 1, nil })
	}
}
