package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mostRow is the number of the last row of the catalogue, each of which has a
// planted bug. Rows behind it came later.
const mostRow = 42

// This test, and not the run, finds a patch whose lines have changed in the
// sources.
func TestEveryPatchFits(t *testing.T) {
	root, err := findRoot(".")
	require.NoError(t, err)
	all, err := corpus(root)
	require.NoError(t, err)
	ids, names, rows := make(map[string]bool), make(map[string]bool), make(map[string]string)
	for _, m := range all {
		assert.False(t, ids[m.id], "two have the number %s", m.id)
		assert.False(t, names[m.name], "two are called %q", m.name)
		if failure, ok := rows[m.row()]; ok {
			assert.Equal(t, failure, m.failure, "%s is another row than what comes before it", m.id)
		}
		ids[m.id], names[m.name], rows[m.row()] = true, true, m.failure
		files, err := m.mutate(root)
		if !assert.NoError(t, err) {
			continue
		}
		for name, text := range files {
			_, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
			assert.NoError(t, err, "%s, %s", m.id, m.name)
		}
		assert.DirExists(t, root+"/"+m.pkg, m.name)
	}
	for n := 1; n <= mostRow; n++ {
		assert.Contains(t, rows, fmt.Sprintf("%02d", n))
	}
}

const somePatch = `a bug

Failure: a row
Package: p
Run: TestX

--- a/f.go
+++ b/f.go
@@ -1,3 +1,3 @@ func f() {
 a
-b
+c
 d
@@ -9,1 +9,2 @@
 e
+f
`

func TestPatch(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "f.go")
	m, err := parse("07b-a-bug.patch", somePatch)
	require.NoError(t, err)
	assert.Equal(t, fault{
		id: "07b", name: "a bug", failure: "a row", pkg: "p", tests: "TestX",
		swaps: []swap{{"f.go", "a\nb\nd\n", "a\nc\nd\n"}, {"f.go", "e\n", "e\nf\n"}},
	}, m)
	assert.Equal(t, "07", m.row())
	_, err = m.mutate(root)
	require.ErrorContains(t, err, "f.go")
	for text, want := range map[string]string{
		"a\nb\nd\ne\n":         "a\nc\nd\ne\nf\n",
		"x\n-e\na\nb\nd\ne\nx": "x\n-e\na\nc\nd\ne\nf\nx", // elsewhere, and beside lines that only end alike
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		files, err := m.mutate(root)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"f.go": want}, files)
	}
	for text, want := range map[string]string{
		"e\n":                   "these lines are in f.go 0 times and not once:\na\nb\nd\n",
		"a\nb\nd\na\nb\nd\ne\n": "these lines are in f.go 2 times and not once:\na\nb\nd\n",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := m.mutate(root)
		assert.ErrorContains(t, err, want)
	}
}

func TestBadPatch(t *testing.T) {
	for _, tc := range []struct{ file, old, now, want string }{
		{"bug.patch", "", "", "its name is not as 07b-what-goes-wrong.patch"},
		{"07b-a.patch", "Run: TestX\n", "", "its header lacks a line"},
		{"07b-a.patch", "Run: TestX\n", "Run: TestX\nRuns: TestX\n", `its header says "Runs: TestX"`},
		{"07b-a.patch", "+c", "c", `its diff has the line "c\n"`},
		{"07b-a.patch", "+++ b/f.go", "+++ b/g.go", `its diff has the line "+++ b/g.go\n"`},
		{"07b-a.patch", "--- a/f.go", "--- /dev/null", `its diff has the line "--- /dev/null\n"`},
		{"07b-a.patch", somePatch[strings.Index(somePatch, "--- a"):], "", "it has no diff"},
	} {
		_, err := parse(tc.file, strings.Replace(somePatch, tc.old, tc.now, 1))
		assert.ErrorContains(t, err, tc.want, tc.now)
	}
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
	found := planting{fault: fault{id: "01a", name: "x"}, foundBy: "TestX", took: 1}
	missed := planting{fault: fault{id: "02a", name: "y", tests: "TestY"}, took: 1}
	require.NoError(t, verdict(t.Output(), []planting{found}, 0))
	require.ErrorContains(t, verdict(t.Output(), []planting{found, missed}, 0), "02a, y: not found by TestY")
}
