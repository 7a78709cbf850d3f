package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mostRow is the number of the last row of the catalogue.
const mostRow = 42

func TestEveryRowIsPlantedOrSaysWhyNot(t *testing.T) {
	seen := make(map[int]bool)
	for _, r := range corpus {
		assert.False(t, seen[r.number], "row %d twice", r.number)
		seen[r.number] = true
		assert.NotEmpty(t, r.failure, "row %d", r.number)
		assert.True(t, r.reason != "" || len(r.faults) > 0, "row %d: mutants, or why there are none", r.number)
	}
	for n := 1; n <= mostRow; n++ {
		assert.True(t, seen[n], "row %d", n)
	}
}

// A text that somebody has moved is to be found in the corpus, not in the run.
func TestEveryMutantFits(t *testing.T) {
	root, err := findRoot(".")
	require.NoError(t, err)
	names := make(map[string]bool)
	total := 0
	for _, r := range corpus {
		for _, m := range r.faults {
			total++
			assert.False(t, names[m.name], "two are called %q", m.name)
			names[m.name] = true
			files, err := m.mutate(root)
			if !assert.NoError(t, err, "row %d", r.number) {
				continue
			}
			assert.NotEmpty(t, files, m.name)
			for name, text := range files {
				_, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
				assert.NoError(t, err, "row %d, %s", r.number, m.name)
			}
			assert.DirExists(t, root+"/"+m.pkg, m.name)
			assert.NotEmpty(t, m.tests, m.name)
		}
	}
	assert.GreaterOrEqual(t, total, mostRow)
}

func TestMutantThatDoesNotFit(t *testing.T) {
	m := fault{name: "a bug", swaps: []swap{
		{"main.go", "package main", "package other"},
		{"main.go", "no such text", ""},
		{"main.go", "err", "failure"},
	}}
	_, err := m.mutate(".")
	require.ErrorContains(t, err, `"a bug": its text is in main.go 0 times`)
	assert.ErrorContains(t, err, "times and not once:\nerr")
	m.swaps[0].file = "none.go"
	_, err = m.mutate(".")
	assert.ErrorContains(t, err, "none.go")
}

func TestFinder(t *testing.T) {
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0.1s)\n":                          "TestA/b",
		"panic: test timed out after 1m30s\n\trunning tests:\n\t\tTestB/c (1m30s)\n":      "TestB/c (never ends)",
		"PASS\ngoleak: Errors on successful test run: found unexpected goroutines":        "leak check after TestX",
		"fatal error: all goroutines are asleep":                                          "TestX (panic)",
		"--- FAIL: TestD (0.0s)\npanic: deadlock: all goroutines in bubble are blocked\n": "TestD",
	} {
		assert.Equal(t, want, finder([]byte(out), "TestX"))
	}
	assert.Equal(t, "^A$/^b \\(c\\)$|^D$", anchored("A/b (c)|D"))
	assert.True(t, runs([]byte("=== RUN   TestA/b_c\n"), "TestA/b_c"))
	assert.False(t, runs([]byte("=== RUN   TestA/b_c\n"), "TestA/b"))
}

func TestVerdict(t *testing.T) {
	found := plant{row: row{number: 1}, fault: fault{name: "x"}, foundBy: "TestX", took: 1}
	missed := plant{row: row{number: 2}, fault: fault{name: "y", tests: "TestY"}, took: 1}
	require.NoError(t, verdict(t.Output(), []plant{found}, 0))
	require.ErrorContains(t, verdict(t.Output(), []plant{found, missed}, 0), "row 2, y: not found by TestY")
}
