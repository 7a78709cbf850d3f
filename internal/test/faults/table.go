package main

import (
	"errors"
	"fmt"
	"io"
	"time"
)

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

const line = "%4v  %-52s  %-66s %7s\n"

func head(w io.Writer) { _, _ = fmt.Fprintf(w, line, "row", "planted", "found by", "time") }

// show prints one line of the table.
func (p *planting) show(w io.Writer) {
	found := p.foundBy
	switch {
	case p.err != nil:
		found = "NOT TRIED"
	case found == "" && p.took > 0:
		found = "NOT FOUND"
	case found == "":
		found = p.tests
	}
	_, _ = fmt.Fprintf(w, line, p.id, p.name, found, seconds(p.took))
}

// verdict counts, and fails unless every bug was found.
func verdict(w io.Writer, planted []planting, took time.Duration) error {
	rows := make(map[string]bool)
	var errs []error
	found := 0
	for _, p := range planted {
		rows[p.row()] = true
		switch {
		case p.err != nil:
			errs = append(errs, fmt.Errorf("%s, %s: %w", p.id, p.name, p.err))
		case p.foundBy == "":
			errs = append(errs, fmt.Errorf("%s, %s: not found by %s in %s", p.id, p.name, p.tests, p.pkg))
		default:
			found++
		}
	}
	_, _ = fmt.Fprintf(w, "faults: %d of %d found, in %d rows, %s\n", found, len(planted), len(rows), seconds(took))
	return errors.Join(errs...)
}
