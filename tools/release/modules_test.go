package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// write makes a repository of these files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func repository(t *testing.T) string {
	t.Helper()
	return write(t, map[string]string{
		"go.mod":                    "module example.com/ours\n\ngo 1.25.0\n",
		"CHANGELOG.md":              "# Changes\n\n## Unreleased\n\n- New.\n\n## 0.1.0\n\nOld.\n",
		"sub/go.mod":                "module example.com/ours/sub\n\ngo 1.26.0\n\nrequire example.com/ours v0.0.0\n\nreplace example.com/ours => ..\n\nreplace example.com/theirs => example.com/fork v1.0.0\n",
		"examples/one/go.mod":       "module example.com/ours/examples/one\n\ngo 1.26.0\n\nrequire example.com/ours/sub v0.0.0\n",
		"internal/test/word/go.mod": "module example.com/ours/internal/test/word\n",
	})
}

func TestWhatIsReleased(t *testing.T) {
	all, err := readModules(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	r := &release{modules: all}
	var tags []string
	for _, m := range r.released() {
		tags = append(tags, m.tag("v0.2.0"))
	}
	if want := []string{"v0.2.0", "sub/v0.2.0"}; len(all) != 4 || !reflect.DeepEqual(tags, want) {
		t.Errorf("of %d modules the tags are %q, and not %q", len(all), tags, want)
	}
}

func TestPrepare(t *testing.T) {
	root := repository(t)
	r := &release{version: "v0.2.0", root: root}
	for range 2 { // the second time changes nothing
		if err := r.prepare(); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"sub/go.mod":          "\nrequire example.com/ours v0.2.0\n",
			"examples/one/go.mod": "\nrequire example.com/ours/sub v0.2.0\n",
			"CHANGELOG.md":        "# Changes\n\n## Unreleased\n\n## 0.2.0\n\n- New.\n\n## 0.1.0\n",
		} {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
}

func TestDisagreements(t *testing.T) {
	all, err := readModules(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, err := range disagreements(all, "v0.2.0", "1.25.0") {
		got = append(got, err.Error())
	}
	want := []string{
		"examples/one/go.mod requires example.com/ours/sub@v0.0.0, and not v0.2.0",
		"sub/go.mod requires example.com/ours@v0.0.0, and not v0.2.0",
		"sub/go.mod replaces example.com/theirs, which users do not",
		"sub/go.mod needs Go 1.26.0, and README names 1.25.0",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, and not %q", got, want)
	}
}

func TestSupportedGo(t *testing.T) {
	const versions = "| what | supported |\n| Go | the two latest releases, 1.25 and 1.26 at present | 1.26 |\n"
	for name, c := range map[string]struct{ readme, versions, wrong string }{
		"both pages agree":   {"Go 1.25 or newer, ZooKeeper", versions, ""},
		"README differs":     {"Go 1.24 or newer", versions, `README.md does not say "Go 1.25 or newer", as docs/versions.md does`},
		"versions.md is odd": {"Go 1.25 or newer", "Go: any", "docs/versions.md names no two releases of Go"},
	} {
		root := write(t, map[string]string{"README.md": c.readme, "docs/versions.md": c.versions})
		got, err := supported(root)
		switch {
		case c.wrong != "" && (err == nil || err.Error() != c.wrong):
			t.Errorf("%s: %v, and not %q", name, err, c.wrong)
		case c.wrong == "" && (err != nil || !reflect.DeepEqual(got, []string{"1.25", "1.26"})):
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
