package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// view writes what there is to see. On a terminal the picture stays in its
// place, below what has happened so far; elsewhere each is one line.
type view struct {
	w     io.Writer
	live  bool
	drawn int // lines of the picture on the terminal
}

func newView(out *os.File) *view {
	v := &view{w: out}
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		term := os.Getenv("TERM")
		v.live = term != "" && term != "dumb"
	}
	return v
}

// picture is what is drawn every now and then.
type picture struct {
	at, length time.Duration
	rate       float64 // transfers per second of late
	moved      int
	total      string
	sound      bool // the total is as it should be
	accounts   []row
	workers    []row
	short      []string // what each worker does, in a word
}

// row is a line of a table; alarm sets it off.
type row struct {
	cells []string
	alarm bool
}

// mostRows keeps the picture within the height of a small terminal.
const mostRows = 8

// line writes a line that stays.
func (v *view) line(format string, args ...any) {
	v.write(v.erasure() + fmt.Sprintf(format, args...) + "\n")
}

// event writes what has happened.
func (v *view) event(at time.Duration, text string) {
	sign := "*"
	if v.live {
		text = bold(text)
	}
	v.line("%s %s %s", seconds(at), sign, text)
}

// draw shows how things are now.
func (v *view) draw(p picture) {
	if !v.live {
		text := fmt.Sprintf("%s   %4.0f/s   total %s   %s", seconds(p.at), p.rate, p.total, strings.Join(p.short, " "))
		v.line("%s", strings.TrimRight(text, " "))
		return
	}
	total := green(p.total)
	if !p.sound {
		total = red(p.total)
	}
	lines := []string{
		"",
		fmt.Sprintf("%s of %v   %4.0f transfers/s   %6d so far   total %s", seconds(p.at), p.length, p.rate, p.moved, total),
		"",
	}
	lines = append(lines, table([]string{"account", "balance", "locked by", "waiting"}, p.accounts)...)
	lines = append(lines, "")
	lines = append(lines, table([]string{"worker", "pid", "connection", "transfers", "locks"}, p.workers)...)
	// Lines are cut at the right margin, for a broken one would count twice.
	v.write(v.erasure() + "\x1b[?7l" + strings.Join(lines, "\n") + "\n\x1b[?7h")
	v.drawn = len(lines)
}

// erasure is what takes the picture away.
func (v *view) erasure() string {
	lines := v.drawn
	v.drawn = 0
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\x1b[J", lines)
}

// write ignores errors: who does not look misses nothing.
func (v *view) write(text string) { _, _ = io.WriteString(v.w, text) }

// table sets rows in columns, numbers to the right.
func table(head []string, rows []row) []string {
	more := len(rows) - mostRows
	if more > 0 {
		rows = rows[:mostRows]
	}
	width := make([]int, len(head))
	for _, r := range append([]row{{cells: head}}, rows...) {
		for i, cell := range r.cells {
			width[i] = max(width[i], len(cell))
		}
	}
	set := func(cells []string, like []string) string {
		var b strings.Builder
		for i, cell := range cells {
			b.WriteString("  ")
			if _, err := strconv.Atoi(like[i]); err == nil {
				fmt.Fprintf(&b, "%*s", width[i], cell)
			} else {
				fmt.Fprintf(&b, "%-*s", width[i], cell)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	like := head
	if len(rows) > 0 {
		like = rows[0].cells
	}
	lines := []string{bold(set(head, like))}
	for _, r := range rows {
		line := set(r.cells, r.cells)
		if r.alarm {
			line = red(line)
		}
		lines = append(lines, line)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return lines
}

func seconds(d time.Duration) string { return fmt.Sprintf("%5.1fs", d.Seconds()) }

// count is "1 worker" or "2 workers".
func count(n int, what, plural string) string {
	if n == 1 {
		plural = ""
	}
	return fmt.Sprintf("%d %s%s", n, what, plural)
}

// and is "3", "3 and 5", or "3, 5 and 7".
func and(numbers []int) string {
	last := len(numbers) - 1
	if last < 1 {
		return join(numbers, "")
	}
	return join(numbers[:last], ", ") + " and " + strconv.Itoa(numbers[last])
}

func join(numbers []int, between string) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, between)
}

func bold(text string) string  { return "\x1b[1m" + text + "\x1b[0m" }
func red(text string) string   { return "\x1b[31m" + text + "\x1b[0m" }
func green(text string) string { return "\x1b[32m" + text + "\x1b[0m" }
