package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// compare compares the exported API of each module with the last version.
func (r *release) compare(ctx context.Context) error {
	revision, err := r.lastVersion(ctx)
	if err != nil {
		return err
	}
	if revision == "" {
		fmt.Println("no version is tagged before this one; -base names a commit to compare with")
		return nil
	}
	base := revision
	if !semver.IsValid(base) {
		base = "v0.0.0"
	}
	changes, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	gorelease := filepath.Join(r.scratch, "gorelease")
	if _, err = output(ctx, filepath.Join(r.root, "tools"), nil, "go", "build", "-o", gorelease, "golang.org/x/exp/cmd/gorelease"); err != nil {
		return err
	}
	env, err := r.userEnv(ctx)
	if err != nil {
		return err
	}
	var known []*modFile
	for _, m := range r.released() {
		if _, err = output(ctx, r.root, nil, "git", "cat-file", "-e", revision+":./"+m.dir+"/go.mod"); err != nil {
			fmt.Println(m.path(), "is new")
			continue
		}
		if err = r.publishModule(ctx, m, base, revision); err != nil {
			return err
		}
		// gorelease refuses a version that the proxy lists already.
		if err = os.WriteFile(filepath.Join(r.versions(m), "list"), []byte(base+"\n"), 0o600); err != nil {
			return err
		}
		known = append(known, m)
	}
	var missing []error
	for _, m := range known {
		report, err := output(ctx, filepath.Join(r.root, m.dir), env, gorelease, "-base="+base, "-version="+r.version)
		if err != nil {
			return err
		}
		fmt.Println(report)
		for _, difference := range unnamed(report, section(string(changes), r.version)) {
			missing = append(missing, fmt.Errorf("CHANGELOG.md does not name %s", difference))
		}
	}
	return errors.Join(missing...)
}

// lastVersion is the revision to compare with: what -base names, or the latest tag of a
// version before this one. All modules are released together, so one tag is enough.
func (r *release) lastVersion(ctx context.Context) (string, error) {
	if r.base != "" {
		return r.base, nil
	}
	tags, err := output(ctx, r.root, nil, "git", "tag", "--merged", "HEAD", "--list", "v*")
	if err != nil {
		return "", err
	}
	last := ""
	for tag := range strings.FieldsSeq(tags) {
		if semver.Compare(tag, r.version) < 0 && semver.Compare(tag, last) > 0 {
			last = tag
		}
	}
	return last, nil
}

// section is what the changes say about a version.
func section(changes, version string) string {
	_, after, _ := strings.Cut(changes, "\n## "+strings.TrimPrefix(version, "v")+"\n")
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// exported are the names that a difference is about, as in "(*Client).Close: removed" and
// "Config.LookAhead: removed".
var exported = regexp.MustCompile(`[A-Z]\w*`)

// unnamed are the incompatible differences of a report of gorelease that the changes leave
// out: they have to have the last name of each, or that of a package that is gone.
func unnamed(report, changes string) []string {
	var missing []string
	inPackage, incompatible := "", false
	for line := range strings.Lines(report) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# "):
			inPackage, incompatible = line[len("# "):], false
		case strings.HasPrefix(line, "## "):
			incompatible = line == "## incompatible changes"
		case line != "" && incompatible:
			about, _, _ := strings.Cut(line, ": ")
			name := path.Base(inPackage)
			if names := exported.FindAllString(about, -1); names != nil {
				name = names[len(names)-1]
			}
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(changes) {
				missing = append(missing, inPackage+": "+line)
			}
		}
	}
	return missing
}
