package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// story makes a stream: "action package [test]" per line, or output after ">".
func story(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		line, output, _ := strings.Cut(line, " >")
		f := append(strings.Fields(line), "", "")
		b.WriteString(`{"Action":"` + f[0] + `","Package":"` + f[1] + `","Test":"` + f[2] + `","Elapsed":2,"Output":"` + output + `\n"}` + "\n")
	}
	return b.String()
}

// suite is a run of the suites with the given cases of each.
func suite(names ...string) []string {
	const pkg = "m/internal/test/conformance"
	lines := []string{"start " + pkg}
	for _, top := range []string{"TestInProcess", "TestInProcessAs39", "TestStandalone", "TestEnsemble"} {
		lines = append(lines, "run "+pkg+" "+top)
		for _, name := range names {
			lines = append(lines, "run "+pkg+" "+top+"/"+name)
		}
		for _, name := range names {
			lines = append(lines, "pass "+pkg+" "+top+"/"+name)
		}
		lines = append(lines, "pass "+pkg+" "+top)
	}
	return append(lines, "pass "+pkg)
}

func TestReport(t *testing.T) {
	const pkg = "m/a"
	good := []string{"start " + pkg, "run " + pkg + " TestA", "output " + pkg + " TestA >quiet", "pass " + pkg + " TestA", "output " + pkg + " >ok m/a 2s", "pass " + pkg}
	for _, tc := range []struct {
		name   string
		in     string
		suites bool
		out    []string // shown
		not    []string // not shown
		wrong  []string // nil for success
	}{
		{"success", story(good...), false, []string{"ok m/a 2s\n", "TestA (2.0s)", "    0 cases passed on one real ZooKeeper", "no internal/test/conformance yet"}, []string{"quiet"}, nil},
		{"nothing", "", false, nil, nil, []string{"nothing ran"}},
		{"not JSON", "go: no such tool\n" + story(good...), false, []string{"go: no such tool\n"}, nil, nil},
		{"failure", story("start m/a", "run m/a TestA", "output m/a TestA >why", "fail m/a TestA", "fail m/a"), false, []string{"why\n"}, nil, []string{"m/a TestA failed", "m/a failed"}},
		{"skip", story("start m/a", "run m/a TestA", "output m/a TestA >no server", "skip m/a TestA", "pass m/a"), false, []string{"no server\n"}, nil, []string{"m/a TestA was skipped"}},
		{"package without tests", story(append(good, "start m/b", "skip m/b")...), false, nil, nil, nil},
		{
			"coverage", story("start m/a", "run m/a TestA", "pass m/a TestA", "output m/a >coverage: 53.7% of statements in ./...",
				"output m/a >ok m/a 2s  coverage: 53.7% of statements in ./...", "pass m/a", "start m/b", "output m/b >m/b  coverage: 0.0% of statements", "pass m/b"),
			false, []string{"ok m/a 2s\n"}, []string{"coverage", "m/b", "\n\n"}, nil,
		},
		{"does not compile", story("build-output m/a >x.go:1: undefined", "start m/a", "fail m/a"), false, []string{"x.go:1: undefined\n"}, nil, []string{"m/a failed"}},
		{"died in a test", story("start m/a", "run m/a TestA", "output m/a TestA >panic: test timed out", "fail m/a"), false, []string{"panic: test timed out\n"}, nil, []string{"m/a TestA did not end", "m/a failed"}},
		{"cut off", story("start m/a", "run m/a TestA"), false, nil, nil, []string{"m/a did not end", "m/a TestA did not end"}},
		{
			"cases", story(suite("create", "create/one", "create/a/b", "delete")...), true,
			[]string{"    3 cases passed on the in-process server (TestInProcess)\n", "    3 cases passed on one real ZooKeeper", "    3 cases passed on a real three-node ensemble"},
			[]string{"yet"}, nil,
		},
		{"suites without cases", story(suite()...), true, nil, nil, []string{"no case ran on one real ZooKeeper", "no case ran on a real three-node ensemble", "no case ran on the in-process server"}},
		{"suites not run", story(good...), true, nil, nil, []string{"no case ran on one real ZooKeeper"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const folder = "internal/test/conformance"
			t.Chdir(t.TempDir())
			if tc.suites {
				require.NoError(t, os.MkdirAll(folder, 0o755))
				require.NoError(t, os.WriteFile(folder+"/suite_test.go", nil, 0o644))
			}
			var out strings.Builder
			err := run(strings.NewReader(tc.in), &out, folder)
			for _, text := range tc.out {
				assert.Contains(t, out.String(), text)
			}
			for _, text := range tc.not {
				assert.NotContains(t, out.String(), text)
			}
			if tc.wrong == nil {
				require.NoError(t, err)
			}
			for _, text := range tc.wrong {
				assert.ErrorContains(t, err, text)
			}
		})
	}
}
