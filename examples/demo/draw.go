package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// draw shows a snapshot together with what the workers have told.
func (d *demo) draw(seen snapshot) {
	if d.lasted > 0 { // the workers are on their way home
		return
	}
	now := time.Now()
	p := picture{at: d.elapsed(), length: d.length, moved: d.moved}
	if passed := now.Sub(d.drawn.at).Seconds(); passed > 0 {
		p.rate = float64(d.moved-d.drawn.moved) / passed
	}
	d.drawn = mark{now, d.moved}
	p.total, p.sound = d.total(seen)
	for i, a := range seen.accounts {
		if !seen.exact && d.seen.accounts != nil {
			a.balance = d.seen.accounts[i].balance
			seen.accounts[i] = a
		}
		p.accounts = append(p.accounts, row{
			cells: []string{strconv.Itoa(a.number), strconv.Itoa(a.balance), a.holder, strings.Join(a.waiting, ", ")},
			alarm: d.isDead(a.holder),
		})
	}
	d.seen = seen
	for _, w := range d.crew {
		p.workers = append(p.workers, d.workerRow(w, seen))
		p.short = append(p.short, d.inShort(w, seen))
	}
	d.view.draw(p)
}

// total puts the sum of all accounts into words, and says whether it is right.
func (d *demo) total(seen snapshot) (text string, sound bool) {
	want := opening * d.accounts
	switch off := seen.total - want; {
	case seen.accounts == nil:
		return "? (ZooKeeper does not answer)", false
	case !seen.exact:
		return "?", true
	case off != 0:
		return fmt.Sprintf("%d: WRONG by %+d", seen.total, off), false
	}
	return fmt.Sprintf("%d: right", seen.total), true
}

func (d *demo) isDead(name string) bool {
	for _, w := range d.crew {
		if w.name() == name {
			return w.dead()
		}
	}
	return false
}

func (d *demo) workerRow(w *process, seen snapshot) row {
	state := w.state
	switch {
	case w.dead():
		state = "KILLED"
	case w.ended:
		state = "ended"
	}
	holds, waits := seen.doings(w.name())
	var lockSet []string
	if len(holds) > 0 {
		lockSet = append(lockSet, "holds "+and(holds))
	}
	if len(waits) > 0 {
		lockSet = append(lockSet, "waits for "+and(waits))
	}
	return row{
		cells: []string{strconv.Itoa(w.number), strconv.Itoa(w.pid), state, strconv.Itoa(w.moved), strings.Join(lockSet, ", ")},
		alarm: w.dead(),
	}
}

// inShort is "w1 has 3+5" for a worker that holds two locks, and "w1 has 3,
// wants 5" for one that holds one and waits for the other.
func (d *demo) inShort(w *process, seen snapshot) string {
	holds, waits := seen.doings(w.name())
	var parts []string
	if w.dead() {
		parts = append(parts, "DEAD")
	}
	if len(holds) > 0 {
		parts = append(parts, "has "+join(holds, "+"))
	}
	if len(waits) > 0 {
		parts = append(parts, "wants "+join(waits, "+"))
	}
	return fmt.Sprintf("w%d %-16s", w.number, strings.Join(parts, ", "))
}
