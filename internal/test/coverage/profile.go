package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// block is a piece of code that runs as a whole or not at all.
type block struct {
	file                           string
	line, column, toLine, toColumn int
	statements                     int
}

// profile says which blocks have run. Each test binary has a line of its own for
// each block.
type profile map[block]bool

// tally counts statements.
type tally struct{ ran, all int }

func (c tally) percent() float64 { return 100 * float64(c.ran) / float64(max(c.all, 1)) }

func read(in io.Reader) (profile, error) {
	p := make(profile)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "mode: ") {
			continue
		}
		colon := strings.LastIndex(line, ":")
		b := block{file: line[:max(colon, 0)]}
		var count int
		if _, err := fmt.Sscanf(line[colon+1:], "%d.%d,%d.%d %d %d", &b.line, &b.column, &b.toLine, &b.toColumn, &b.statements, &count); err != nil {
			return nil, fmt.Errorf("%s: %w", strconv.Quote(line), err)
		}
		p[b] = p[b] || count > 0
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(p) == 0 {
		return nil, errors.New("it is empty")
	}
	return p, nil
}

func (p profile) packages() map[string]tally {
	all := make(map[string]tally)
	for b, ran := range p {
		c := all[path.Dir(b.file)]
		c.all += b.statements
		if ran {
			c.ran += b.statements
		}
		all[path.Dir(b.file)] = c
	}
	return all
}

// table prints a line for each package, and one for all.
func (p profile) table(out io.Writer) error {
	all := p.packages()
	var total tally
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		total.ran, total.all = total.ran+c.ran, total.all+c.all
		if _, err := fmt.Fprintf(out, "%6.2f %% %6d of %6d  %s\n", c.percent(), c.ran, c.all, name); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%6.2f %% %6d of %6d  in all\n", total.percent(), total.ran, total.all)
	return err
}

// named is whether a package is meant by the end of its path.
func named(full, name string) bool { return full == name || strings.HasSuffix(full, "/"+name) }

// judge returns which of the packages have too little.
func (p profile) judge(least float64, of []string) error {
	var wrong []error
	all := p.packages()
	for _, name := range of {
		found := false
		for full, c := range all {
			if !named(full, name) {
				continue
			}
			found = true
			if c.percent() < least {
				wrong = append(wrong, fmt.Errorf("%s: %.2f %% of statements, less than %g", full, c.percent(), least))
			}
		}
		if !found {
			wrong = append(wrong, fmt.Errorf("%s: not in the profile", name))
		}
	}
	return errors.Join(wrong...)
}

// list prints where the code of a package is that has not run.
func (p profile) list(out io.Writer, name string) error {
	var missed []block
	for b, ran := range p {
		if !ran && named(path.Dir(b.file), name) {
			missed = append(missed, b)
		}
	}
	slices.SortFunc(missed, func(a, b block) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	for _, b := range missed {
		if _, err := fmt.Fprintf(out, "%s:%d: %d\n", path.Join(name, path.Base(b.file)), b.line, b.statements); err != nil {
			return err
		}
	}
	return nil
}
