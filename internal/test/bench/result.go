package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// result is what was measured of one candidate in one situation.
type result struct {
	server, group, name string
	clients             int       // that contend; 0 is one alone
	unit                string    // as package testing writes units
	values              []float64 // one a round
	tail                []float64 // the 99th percentile of each round, if there is one
	tailUnit            string    // its unit, if that is another one
	cpu                 []float64 // processor time for each of what is counted, in nanoseconds, if it is known
}

// write prints results in Go's benchmark format. The order of candidates stays,
// so that benchstat compares with the first of each group.
func write(w io.Writer, all []result) error {
	_, err := fmt.Fprintf(w, "goos: %s\ngoarch: %s\nUnit hand-offs/s better=higher\nUnit cycles/s better=higher\n", runtime.GOOS, runtime.GOARCH)
	for _, r := range all {
		_, printErr := fmt.Fprintf(w, "server: %s\ngroup: %s\n", r.server, r.group)
		err = errors.Join(err, printErr)
		name := "BenchmarkLock/of=" + strings.NewReplacer(", ", "_", " ", "_").Replace(r.name) // what follows a last hyphen is GOMAXPROCS
		if r.clients > 0 {
			name += fmt.Sprintf("/clients=%d", r.clients)
		}
		for i, value := range r.values {
			line := fmt.Sprintf("%s 1 %g %s", name, value, r.unit)
			if i < len(r.tail) {
				line += fmt.Sprintf(" %g p99-%s", r.tail[i], cmp.Or(r.tailUnit, r.unit))
			}
			if i < len(r.cpu) {
				line += fmt.Sprintf(" %g cpu-ns/op", r.cpu[i])
			}
			_, printErr := fmt.Fprintln(w, line)
			err = errors.Join(err, printErr)
		}
	}
	return err
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

func nanos(d time.Duration) float64 { return float64(d.Nanoseconds()) }

func pathName(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, " ", "-"), "/", "-") }

// closers end what was opened, in reverse.
type closers []func() error

func (c closers) close(err error) error {
	for _, fn := range slices.Backward(c) {
		err = errors.Join(err, fn())
	}
	return err
}
