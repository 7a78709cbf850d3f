package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/lockview"
)

// refresh is how often --watch shows the table anew.
const refresh = 2 * time.Second

// listLocks prints the locks below a path, the oldest first.
func listLocks(ctx context.Context, inv *invocation) error {
	path, err := inv.path()
	switch {
	case err != nil:
		return err
	case inv.live && !isTerminal(inv.sys.out):
		return inv.verb.misuse("--watch needs a terminal")
	case inv.live:
		return inv.watchLocks(ctx, path)
	}
	return inv.withClient(ctx, func(ctx context.Context, client *framework.Client) error {
		survey, err := lockview.SurveyOf(ctx, client, path, inv.older)
		if err != nil {
			return err
		}
		locks := inv.aged(survey.Locks)
		switch {
		case inv.json:
			for i := range locks {
				if err = writeJSON(inv.sys.out, locks[i]); err != nil {
					return err
				}
			}
		case isTerminal(inv.sys.out):
			err = inv.print(table(locks, inv.look()))
		default:
			err = inv.print(columns(locks))
		}
		inv.complainOf(survey)
		return err
	})
}

// watchLocks shows the table until ctx ends.
func (inv *invocation) watchLocks(ctx context.Context, path string) error {
	connecting, cancel := context.WithTimeoutCause(ctx, inv.timeout, errTimeout)
	defer cancel()
	client, err := inv.connect(connecting)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for {
		survey, err := lockview.SurveyOf(ctx, client, path, inv.older)
		if err != nil {
			return err
		}
		look, locks := inv.look(), inv.aged(survey.Locks)
		waits := 0
		for _, l := range locks {
			waits += l.Waits
		}
		head := fmt.Sprintf("%s  %s: %d of %d locks, %d waiting\n", time.Now().Format(time.TimeOnly), lockview.Printable(path), len(locks), len(survey.Locks), waits)
		if rows := look.height - 3; rows > 0 && len(locks) > rows {
			locks = locks[:rows]
		}
		if err := inv.print(home + strings.ReplaceAll(head+table(locks, look), "\n", toEndOfLine+"\n") + toEndOfScreen); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(refresh):
		}
	}
}

// What a terminal obeys.
const (
	home          = "\x1b[H"
	toEndOfLine   = "\x1b[K"
	toEndOfScreen = "\x1b[J"
	bold          = "\x1b[1m"
	yellow        = "\x1b[33m"
	red           = "\x1b[31m"
	plain         = "\x1b[0m"
)

// aged are the locks that --older asks for. One whose age is not known is among them.
func (inv *invocation) aged(all []lockview.Lock) []lockview.Lock {
	var aged []lockview.Lock
	for _, l := range all {
		if l.Since.IsZero() || max(l.Age, l.Oldest) >= inv.older.Seconds() {
			aged = append(aged, l)
		}
	}
	return aged
}

// complainOf says what a survey could not show.
func (inv *invocation) complainOf(s *lockview.Survey) {
	for _, text := range s.Odd {
		inv.sys.complain("paddock: " + lockview.Printable(text))
	}
	if s.Hidden > 0 {
		inv.sys.complain(fmt.Sprintf("paddock: %d paths may not be listed with these credentials", s.Hidden))
	}
}

// columns are locks for programs: a line each, with tabs between the columns, and ages in
// seconds. An unknown age is a dash.
func columns(locks []lockview.Lock) string {
	var b strings.Builder
	for _, l := range locks {
		age := "-"
		if !l.Since.IsZero() {
			age = strconv.Itoa(int(l.Age))
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%d\t%d\n", age, l.Kind, lockview.Printable(l.Path), lockview.Excerpt(l.Holder), l.Waits, int(l.Oldest))
	}
	return b.String()
}

// look is what a terminal is like; 0 for a size that is not known.
type look struct {
	width, height int
	colours       bool
}

func (inv *invocation) look() look {
	l := look{colours: inv.sys.getenv("NO_COLOR") == "" && inv.sys.getenv("TERM") != "dumb"}
	l.width, l.height = sizeOf(inv.sys.out)
	return l
}

// long is how old a wait is that is shown in red.
const long = time.Minute

// table are locks for people.
func table(locks []lockview.Lock, look look) string {
	rows := [][]string{{"AGE", "KIND", "PATH", "HOLDER", "WAIT", "OLDEST WAIT"}}
	combined := slices.ContainsFunc(locks, func(l lockview.Lock) bool { return len(l.Has) > 0 })
	if combined {
		rows[0] = append(rows[0], "WHICH HAS")
	}
	for _, l := range locks {
		age, oldest := "?", ""
		if !l.Since.IsZero() {
			age = ageOf(l.Age)
		}
		if l.Waits > 0 {
			oldest = ageOf(l.Oldest)
		}
		holder := lockview.Excerpt(l.Holder)
		if l.Holds > 1 {
			holder += fmt.Sprintf(" and %d more", l.Holds-1)
		}
		if len(l.HolderWants) > 0 {
			holder += ", waits for " + lockview.Printable(strings.Join(l.HolderWants, " "))
		}
		row := []string{age, string(l.Kind), lockview.Printable(l.Path), holder, strconv.Itoa(l.Waits), oldest}
		if combined {
			row = append(row, lockview.Printable(strings.Join(l.Has, " ")))
		}
		rows = append(rows, row)
	}
	widths := widthsOf(rows, look.width)
	var b strings.Builder
	for i, row := range rows {
		colour := ""
		switch {
		case !look.colours:
		case i == 0:
			colour = bold
		case locks[i-1].Oldest >= long.Seconds():
			colour = red
		case locks[i-1].Waits > 0:
			colour = yellow
		}
		b.WriteString(colour)
		line := ""
		for j, cell := range row {
			line += pad(cell, widths[j]) + "  "
		}
		b.WriteString(strings.TrimRight(line, " "))
		if colour != "" {
			b.WriteString(plain)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// widthsOf are the widths of columns. If they are too wide together, path and holder share
// what is left.
func widthsOf(rows [][]string, most int) []int {
	const path, holder, least, gap = 2, 3, 12, 2
	widths := make([]int, len(rows[0]))
	total := 0
	for j := range widths {
		for _, row := range rows {
			widths[j] = max(widths[j], utf8.RuneCountInString(row[j]))
		}
		total += widths[j] + gap
	}
	if over := total - gap - most; most > 0 && over > 0 {
		less := min(over, max(0, widths[holder]-least))
		widths[holder] -= less
		widths[path] = max(least, widths[path]-(over-less))
	}
	return widths
}

// pad makes a cell as wide as its column. One that is too long loses its middle: paths differ
// at their ends.
func pad(cell string, width int) string {
	r := []rune(cell)
	if over := len(r) - width; over > 0 {
		keep := width - 1
		return string(r[:keep/2]) + "…" + string(r[len(r)-(keep-keep/2):])
	}
	return cell + strings.Repeat(" ", width-len(r))
}

func ageOf(seconds float64) string {
	return lockview.Age(time.Duration(seconds * float64(time.Second)))
}
