package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// result is what was measured of one candidate in one situation.
type result struct {
	Server string    `json:"server"`
	Group  string    `json:"group"`
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`           // one a round
	Ratios []float64 `json:"ratios,omitempty"` // to the first of the group in the same round
	Tail   []float64 `json:"tail,omitempty"`   // the 99th percentile of each round
}

// add takes in a round's value, and that of the group's first.
func (r *result) add(value, base float64) {
	r.Values = append(r.Values, round(value))
	if base > 0 {
		r.Ratios = append(r.Ratios, round(value/base))
	}
}

// round keeps four digits, which is more than there is to the measurements.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	return sorted[len(sorted)/2]
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

func micros(d time.Duration) float64 { return round(float64(d) / float64(time.Microsecond)) }

func pathName(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, " ", "-"), "/", "-") }

// closers end what was opened, in reverse.
type closers []func() error

func (c closers) close(err error) error {
	for _, fn := range slices.Backward(c) {
		err = errors.Join(err, fn())
	}
	return err
}
