package znode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

func TestRules(t *testing.T) {
	const none = -1
	r, w := func(n string) string { return "_c_1__READ__000000000" + n }, func(n string) string { return "_c_1__WRIT__000000000" + n }
	for name, tc := range map[string]struct {
		rule  Rule
		queue []string
		at    int
		ahead int
	}{
		"a writer that is first":              {Exclusive, []string{w("0")}, 0, none},
		"a writer behind a reader":            {Exclusive, []string{r("0"), w("1")}, 1, 0},
		"a writer that is not there yet":      {Exclusive, []string{w("0"), w("1")}, 2, 1},
		"a reader that is first":              {Readers, []string{r("0")}, 0, none},
		"a reader behind readers":             {Readers, []string{r("0"), r("1"), r("2")}, 2, none},
		"a reader behind writers: the last":   {Readers, []string{w("0"), w("1"), r("2"), r("3")}, 3, 1},
		"a reader that was its writer":        {Readers, []string{w("0"), r("0")}, 1, none},
		"the same, another writer is ahead":   {Readers, []string{w("0"), w("1"), r("1")}, 2, 0},
		"a reader that is not there yet":      {Readers, []string{r("0"), w("1")}, 2, 1},
		"a lease within the number":           {FirstN(2), []string{r("0"), r("1"), r("2")}, 1, none},
		"a lease beyond it waits for any":     {FirstN(2), []string{r("0"), r("1"), r("2")}, 2, 0},
		"no lease is to be had":               {FirstN(0), []string{r("0")}, 0, 0},
		"a lease that is not there yet":       {FirstN(2), []string{r("0"), r("1")}, 2, 0},
		"a lease that would be within it yet": {FirstN(2), []string{r("0")}, 1, none},
	} {
		t.Run(name, func(t *testing.T) {
			snap, err := Parse(wire.NamesOf(tc.queue), []Kind{Read, Write}, true)
			require.NoError(t, err)
			defer snap.Free()
			ahead, waits := tc.rule(snap, tc.at)
			assert.Equal(t, tc.ahead != none, waits)
			if waits {
				assert.Equal(t, tc.ahead, ahead)
			}
		})
	}
}
