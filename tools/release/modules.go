package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// modFile is one module of the repository.
type modFile struct {
	dir string // below the root, with slashes, "." for the root
	*modfile.File
}

// path is what users import the module by.
func (m *modFile) path() string { return m.Module.Mod.Path }

// released says whether users get the module by its version.
func (m *modFile) released() bool {
	first, _, _ := strings.Cut(m.dir, "/")
	return first != "examples" && first != "tools" && !slices.Contains(strings.Split(m.dir, "/"), "internal")
}

// tag is the name by which go finds a version of the module.
func (m *modFile) tag(version string) string { return path.Join(m.dir, version) }

// released are the modules that users get.
func (r *release) released() []*modFile {
	return slices.DeleteFunc(slices.Clone(r.modules), func(m *modFile) bool { return !m.released() })
}

// readModules finds all modules below a root, the one at the root first.
func readModules(root string) ([]*modFile, error) {
	var all []*modFile
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, text, nil)
		all = append(all, &modFile{filepath.ToSlash(dir), file})
		return err
	})
	slices.SortFunc(all, func(a, b *modFile) int { return cmp.Compare(a.dir, b.dir) })
	if err == nil && (len(all) == 0 || all[0].dir != ".") {
		err = errors.New("no module at the root")
	}
	return all, err
}

// prepare makes the changes of the release: each module requires the others in its
// version, and what CHANGELOG.md has under Unreleased gets its heading.
func (r *release) prepare() error {
	all, err := readModules(r.root)
	if err != nil {
		return err
	}
	r.modules = all
	for _, m := range all {
		for _, ours := range all {
			if slices.ContainsFunc(m.Require, func(q *modfile.Require) bool { return q.Mod.Path == ours.path() }) {
				if err := m.AddRequire(ours.path(), r.version); err != nil {
					return err
				}
			}
		}
		text, err := m.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.root, m.dir, "go.mod"), text, 0o600); err != nil {
			return err
		}
	}
	changes := filepath.Join(r.root, "CHANGELOG.md")
	text, err := os.ReadFile(changes)
	if err != nil {
		return err
	}
	return os.WriteFile(changes, []byte(withHeading(string(text), r.version)), 0o600)
}

// withHeading gives what is unreleased the heading of a version, unless that is there.
func withHeading(changes, version string) string {
	const unreleased = "\n## Unreleased\n"
	heading := "\n## " + strings.TrimPrefix(version, "v") + "\n"
	if strings.Contains(changes, heading) {
		return changes
	}
	return strings.Replace(changes, unreleased, unreleased+heading, 1)
}

// disagreements are what keeps modules from being had in one version, or with the oldest
// Go.
func disagreements(modules []*modFile, version, oldestGo string) []error {
	var wrong []error
	for _, m := range modules {
		say := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("%s/go.mod "+format, append([]any{m.dir}, args...)...))
		}
		for _, q := range m.Require {
			if isOurs(modules, q.Mod) && q.Mod.Version != version {
				say("requires %s, and not %s", q.Mod, version)
			}
		}
		if !m.released() {
			continue
		}
		for _, q := range m.Replace {
			if !isOurs(modules, q.Old) {
				say("replaces %s, which users do not", q.Old.Path)
			}
		}
		if m.Go != nil && semver.Compare("v"+m.Go.Version, "v"+oldestGo) > 0 {
			say("needs Go %s, and README names %s", m.Go.Version, oldestGo)
		}
	}
	return wrong
}

func isOurs(modules []*modFile, m module.Version) bool {
	return slices.ContainsFunc(modules, func(ours *modFile) bool { return ours.path() == m.Path })
}

// supportedGo matches the row of docs/versions.md that names the releases of Go.
var supportedGo = regexp.MustCompile(`(?m)^\| Go \| [^|]*?(1\.[0-9]+) and (1\.[0-9]+)`)

// supported are the oldest and the newest Go of docs/versions.md, which README must name
// too.
func supported(root string) ([]string, error) {
	versions, err := os.ReadFile(filepath.Join(root, "docs/versions.md"))
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	found := supportedGo.FindSubmatch(versions)
	if found == nil {
		return nil, errors.New("docs/versions.md names no two releases of Go")
	}
	oldest, newest := string(found[1]), string(found[2])
	if want := "Go " + oldest + " or newer"; !strings.Contains(string(readme), want) {
		return nil, fmt.Errorf("README.md does not say %q, as docs/versions.md does", want)
	}
	return []string{oldest, newest}, nil
}

// commit makes the changes of the release in the clone, and shows which they are.
func (r *release) commit(ctx context.Context) (err error) {
	if r.gos, err = supported(r.root); err != nil {
		return err
	}
	if err = r.prepare(); err != nil {
		return err
	}
	if wrong := disagreements(r.modules, r.version, r.gos[0]+".0"); wrong != nil {
		return errors.Join(wrong...)
	}
	stat, err := output(ctx, r.root, nil, "git", "diff", "--stat")
	if err != nil || stat == "" {
		return err
	}
	fmt.Println(" " + stat)
	_, err = output(ctx, r.root, nil, "git", "-c", "user.name=release", "-c", "user.email=release@localhost", "commit", "--quiet", "--all", "--message", "release "+r.version)
	return err
}

// tag sets the tag of each module that is released.
func (r *release) tag(ctx context.Context) error {
	for _, m := range r.released() {
		fmt.Println(m.tag(r.version))
		if _, err := output(ctx, r.root, nil, "git", "tag", "--force", m.tag(r.version)); err != nil {
			return err
		}
	}
	return nil
}
