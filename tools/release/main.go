// Command release rehearses a release in a clone, and changes nothing outside of it.
//
//	go run ./release -version v0.2.0
//
// It commits to the clone what a release changes, sets the tag of each module, and makes a
// module proxy of files from the tags. From that proxy it gets and builds each module as a
// user does, in an empty folder, with the oldest and the newest Go that docs/versions.md
// names. It compares the exported API with that of the last version, and wants each
// difference that can break a user's code to be named in CHANGELOG.md.
//
// It builds the commands for the common systems, with checksums.
//
// With -prepare it makes the changes of a release in the working tree, and stops. With
// -binaries it builds the commands of a version that is tagged, and stops.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one version of all modules, in a clone.
type release struct {
	version string
	root    string // of the clone
	scratch string // a folder that goes with the process
	base    string // a revision to compare with, if not the last version
	modules []*modFile
	gos     []string // of docs/versions.md, the oldest first
}

func run(ctx context.Context, args []string) (err error) {
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	version := f.String("version", "", "the `version` to release, such as v0.2.0")
	root := f.String("root", "..", "the `folder` of the repository")
	base := f.String("base", "", "compare the exported API with this `revision`; by default the last version that is tagged")
	prepare := f.Bool("prepare", false, "change versions and CHANGELOG.md in the working tree, and stop")
	binaries := f.String("binaries", "", "build the commands of the version, which is tagged, into this `folder`, and stop")
	if err := f.Parse(args); err != nil {
		return err
	}
	if !semver.IsValid(*version) || semver.Canonical(*version) != *version {
		return fmt.Errorf("-version %q: not of the form v1.2.3", *version)
	}
	if *prepare {
		r := &release{version: *version, root: *root}
		return r.prepare()
	}
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	r := &release{version: *version, base: *base, root: filepath.Join(scratch, "clone"), scratch: scratch}
	if *binaries != "" {
		return r.buildTagged(ctx, *root, *binaries)
	}
	return r.rehearse(ctx, *root)
}

// rehearse makes the release from the commit that is checked out in a repository.
func (r *release) rehearse(ctx context.Context, repository string) error {
	if changed, err := output(ctx, repository, nil, "git", "status", "--porcelain"); err != nil {
		return err
	} else if changed != "" {
		fmt.Println("note: what is not committed is left out")
	}
	if _, err := output(ctx, ".", nil, "git", "clone", "--quiet", repository, r.root); err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"versions", r.commit},
		{"tags", r.tag},
		{"proxy", r.publish},
		{"users", r.use},
		{"api", r.compare},
		{"binaries", func(ctx context.Context) error { return r.binaries(ctx, filepath.Join(r.scratch, "binaries")) }},
	}
	for _, s := range steps {
		fmt.Println("===", s.name)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	fmt.Println("passed. To release, commit what -prepare changes, and push the commit. Then set and push these tags at once:")
	for _, m := range r.released() {
		fmt.Println(" ", m.tag(r.version))
	}
	return nil
}

// output runs a command, and returns what it prints. An error has all that it said.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}
