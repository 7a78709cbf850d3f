package transcript

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"
)

func TestTranscripts(t *testing.T) {
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) { golden(t, s.name+".txt", render(play(t, s.play))) })
	}
}

var trailing = regexp.MustCompile(`(?m) +$`)

// The same in numbers, on one page.
func TestRequests(t *testing.T) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "situation\tstep\tround trips\trequests")
	for _, s := range situations() {
		var rows []string
		var last *step
		for _, one := range play(t, s.play) {
			if one.step != last {
				last = one.step
				rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t", s.name, one.title, one.roundTrips()))
			}
			if counts := one.counts(); counts != "" {
				rows[len(rows)-1] += fmt.Sprintf("%s: %s; ", one.client, counts)
			}
		}
		for _, row := range rows {
			fmt.Fprintln(table, strings.TrimSuffix(row, "; "))
		}
	}
	_ = table.Flush()
	golden(t, "requests.txt", trailing.ReplaceAllString(b.String(), ""))
}
