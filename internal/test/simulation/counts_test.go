package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// counts adds up what seeds came to.
type counts struct {
	seeds, histories, operations, undecided, violations, stale int
	virtual, recovery, longestYield, leaderless                time.Duration
	fired, rounds                                              map[string]int
}

func (a *counts) add(r *result) {
	if a.fired == nil {
		a.fired, a.rounds = make(map[string]int), make(map[string]int)
	}
	a.seeds++
	a.histories += r.Histories
	a.operations += r.Operations
	a.undecided += r.Undecided
	a.violations += len(r.Violations)
	a.stale += r.Stale
	a.virtual += r.Virtual
	a.recovery, a.longestYield = max(a.recovery, r.Recovery), max(a.longestYield, r.LongestYield)
	a.leaderless = max(a.leaderless, r.Leaderless)
	for k, n := range r.Fired {
		a.fired[k] += n
	}
	for k, n := range r.Rounds {
		a.rounds[k] += n
	}
}

func (a *counts) faults() (n int) {
	for _, k := range a.fired {
		n += k
	}
	return n
}

// missing are the kinds of fault that never came about.
func (a *counts) missing() (names []string) {
	for _, k := range append(kindNames(), onlyDrift) {
		if a.fired[k] == 0 {
			names = append(names, k)
		}
	}
	return names
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

func (a *counts) String() string {
	return fmt.Sprintf("%d seeds, %.1f virtual hours, %d faults, %d histories, %d violations, %d undecided",
		a.seeds, a.virtual.Hours(), a.faults(), a.histories, a.violations, a.undecided)
}

// table is everything, for people.
func (a *counts) table() string {
	var b strings.Builder
	row := func(what string, n any) { fmt.Fprintf(&b, "%-40s %10v\n", what, n) }
	row("seeds", a.seeds)
	row("virtual hours", fmt.Sprintf("%.1f", a.virtual.Hours()))
	row("transactions", a.operations)
	row("faults", a.faults())
	for _, k := range append(kindNames(), onlyDrift) {
		row("  "+k, a.fired[k])
	}
	total := 0
	for _, n := range a.rounds {
		total += n
	}
	row("rounds", total)
	for _, r := range rounds {
		row("  "+r.name, a.rounds[r.name])
	}
	row("terms of candidates that stand again", a.rounds[standing])
	row("histories judged", a.histories)
	row("unfenced writes past the end of a hold", a.stale)
	row("longest recovery after the last fault", a.recovery.Round(time.Millisecond))
	row("longest beyond the bound, others passing", a.longestYield.Round(time.Millisecond))
	row("longest without a leader after it", a.leaderless.Round(time.Millisecond))
	row("undecided", a.undecided)
	row("violations", a.violations)
	return b.String()
}

// enough says what a run of many seeds lacks to prove anything.
func (a *counts) enough() (lacks []string) {
	if missing := a.missing(); len(missing) > 0 && a.seeds >= 100 {
		lacks = append(lacks, "faults that never came about: "+strings.Join(missing, ", "))
	}
	if a.seeds < 1000 {
		return lacks
	}
	for what, ok := range map[string]bool{
		"less than 5 virtual hours":                                   a.virtual >= 5*time.Hour,
		"fewer than 20,000 faults":                                    a.faults() >= 20_000,
		"fewer than 1,000 histories":                                  a.histories >= 1000,
		"no unfenced write came too late, so the faults are too weak": a.stale > 0,
	} {
		if !ok {
			lacks = append(lacks, what)
		}
	}
	slices.Sort(lacks)
	return lacks
}
