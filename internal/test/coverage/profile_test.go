package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two test binaries, of which the second has run one block more. A package
// whose path ends in the same letters is another one.
const example = `mode: set
m/recipes/a.go:1.10,3.2 18 1
m/recipes/a.go:5.1,6.2 1 0
m/recipes/a.go:7.20,7.30 1 0
m/otherrecipes/b.go:1.1,2.2 4 0
mode: set
m/recipes/a.go:1.10,3.2 18 1
m/recipes/a.go:5.1,6.2 1 1
m/recipes/a.go:7.20,7.30 1 0
m/otherrecipes/b.go:1.1,2.2 4 0
`

func TestCoverage(t *testing.T) {
	for _, tc := range []struct {
		name, profile string
		least         float64
		of            []string
		missed        string
		out           string
		wrong         []string // nil for success
	}{
		{
			name: "enough", profile: example, least: 95, of: []string{"recipes"},
			out: "  0.00 %      0 of      4  m/otherrecipes\n 95.00 %     19 of     20  m/recipes\n 79.17 %     19 of     24  in all\n",
		},
		{
			name: "too little", profile: strings.ReplaceAll(example, "5.1,6.2 1 1", "5.1,6.2 1 0"), least: 95, of: []string{"recipes"},
			out:   "  0.00 %      0 of      4  m/otherrecipes\n 90.00 %     18 of     20  m/recipes\n 75.00 %     18 of     24  in all\n",
			wrong: []string{"m/recipes: 90.00 % of statements, less than 95"},
		},
		{
			name: "not there", profile: example, least: 95, of: []string{"recipes", "frame", "otherrecipes"},
			out:   "  0.00 %      0 of      4  m/otherrecipes\n 95.00 %     19 of     20  m/recipes\n 79.17 %     19 of     24  in all\n",
			wrong: []string{"frame: not in the profile", "m/otherrecipes: 0.00 %"},
		},
		{name: "what is missed", profile: example, missed: "recipes", out: "recipes/a.go:7: 1\n"},
		{name: "nothing", profile: "mode: set\n", wrong: []string{"it is empty"}},
		{name: "no profile", profile: "something else\n", wrong: []string{`"something else"`}},
		{name: "cut off", profile: example + "m/recipes/a.go:7.20,7.30 ", wrong: []string{"m/recipes/a.go:7.20"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cover.out")
			require.NoError(t, os.WriteFile(file, []byte(tc.profile), 0o600))
			var out strings.Builder
			err := run(&out, file, tc.least, tc.of, tc.missed)
			assert.Equal(t, tc.out, out.String())
			if tc.wrong == nil {
				require.NoError(t, err)
			}
			for _, text := range tc.wrong {
				assert.ErrorContains(t, err, text)
			}
		})
	}
	require.Error(t, run(new(strings.Builder), filepath.Join(t.TempDir(), "none"), 95, nil, ""))
}
