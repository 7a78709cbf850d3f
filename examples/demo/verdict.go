package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// verdict counts the money, says how it went and whether all was well.
func (d *demo) verdict(ctx context.Context) (good bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*d.timeout+slack)
	defer cancel()
	left, err := d.locksLeft(ctx)
	if err != nil {
		return false, fmt.Errorf("look for locks that are left: %w", err)
	}
	if left > 0 {
		d.fail("%d lock nodes are left", left)
	}
	balances, err := d.bank.balances(ctx)
	if err != nil {
		return false, fmt.Errorf("count the money: %w", err)
	}
	before, after, agree := opening*d.accounts, 0, 0
	for i, balance := range balances {
		after += balance
		if balance == d.expected[i] {
			agree++
		}
	}

	v := d.view
	v.line("")
	v.line("After %.1f s on %s, seed %d:", d.lasted.Seconds(), d.where, d.seed)
	v.line("  transfers        %d, %.0f per second", d.moved, float64(d.moved)/d.lasted.Seconds())
	v.line("  processes        %s", d.fates())
	if d.passed > 0 {
		v.line("  locks passed on  %.1f s after the kill, with a session timeout of %v", d.passed.Seconds(), d.timeout)
	}
	v.line("  locks left       %d", left)
	if !d.unsure {
		v.line("  accounts         %d of %d hold what the transfers add up to", agree, d.accounts)
	} else {
		v.line("  accounts         not compared, since a transfer may have been made and not reported")
		agree = d.accounts
	}
	v.line("  total            %d before, %d after", before, after)
	v.line("")

	switch {
	case after > before:
		v.line("BROKEN: the total was %d and is %d: %d came out of nowhere.", before, after, after-before)
	case after < before:
		v.line("BROKEN: the total was %d and is %d: %d vanished.", before, after, before-after)
	case agree < d.accounts:
		v.line("BROKEN: the total is what it was, but by luck: %d accounts are wrong.", d.accounts-agree)
	case len(d.problems) == 0:
		v.line("BALANCED: the total is what it was.")
		return true, nil
	}
	if d.unlocked {
		v.line("This is what locks are for. Run it again without -unlocked.")
	}
	for _, p := range d.problems {
		v.line("FAILED: %s", p)
	}
	return false, nil
}

// fates says what became of the workers.
func (d *demo) fates() string {
	var killed []int
	ended, others := 0, 0
	for _, p := range d.crew {
		switch {
		case p.killed:
			killed = append(killed, p.number)
		case p.ended && p.status == nil:
			ended++
		default:
			others++
		}
	}
	texts := []string{fmt.Sprintf("%d ended cleanly", ended)}
	if len(killed) > 0 {
		texts = append(texts, fmt.Sprintf("worker %s was killed while it held accounts %s", and(killed), and(d.victim.paused)))
	}
	if others > 0 {
		texts = append(texts, fmt.Sprintf("%d ended otherwise", others))
	}
	return strings.Join(texts, ", ")
}

// locksLeft counts the nodes in all queues. Those of the dead go with their
// sessions, and are waited for until ctx is about to end.
func (d *demo) locksLeft(ctx context.Context) (left int, err error) {
	patient, cancel := context.WithTimeout(ctx, 2*d.timeout+slack/2)
	defer cancel()
	tick := time.NewTicker(glance / 10)
	defer tick.Stop()
	for {
		queues, err := d.bank.queues(ctx)
		if err != nil {
			return 0, err
		}
		left = 0
		for _, queue := range queues {
			left += len(queue)
		}
		if left == 0 {
			return 0, nil
		}
		select {
		case <-tick.C:
		case <-patient.Done():
			return left, nil
		}
	}
}
