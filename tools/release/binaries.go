package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// commands are the programs that a release has as files, by the folder of each.
var commands = []string{"cmd/paddock", "testing/cmd/zkserver"}

// systems are what they are built for.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// sumsFile has the checksums, as sha256sum -c reads them.
const sumsFile = "SHA256SUMS"

// buildTagged builds the commands of the version as its tag has them.
func (r *release) buildTagged(ctx context.Context, repository, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := output(ctx, ".", nil, "git", "clone", "--quiet", repository, r.root); err != nil {
		return err
	}
	if _, err := output(ctx, r.root, nil, "git", "checkout", "--quiet", r.version); err != nil {
		return err
	}
	return r.binaries(ctx, dir)
}

// binaries builds the commands of the version that is checked out in the clone, into a folder.
// They are static, and the same wherever they are built with the same Go: a second clone shows
// it for this system.
func (r *release) binaries(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	again := filepath.Join(r.scratch, "another", "place")
	if _, err := output(ctx, ".", nil, "git", "clone", "--quiet", r.root, again); err != nil {
		return err
	}
	if _, err := output(ctx, again, nil, "git", "checkout", "--quiet", r.version); err != nil {
		return err
	}
	here := runtime.GOOS + "/" + runtime.GOARCH
	for _, system := range systems {
		for _, command := range commands {
			file := filepath.Join(dir, binaryName(command, r.version, system))
			if err := build(ctx, r.root, command, system, file); err != nil {
				return err
			}
			if system != here {
				continue
			}
			twin := filepath.Join(r.scratch, "twin")
			if err := build(ctx, again, command, system, twin); err != nil {
				return err
			}
			if err := same(file, twin); err != nil {
				return err
			}
		}
	}
	if err := r.tellsVersion(ctx, dir, here); err != nil {
		return err
	}
	sums, err := sumsOf(dir)
	if err != nil {
		return err
	}
	fmt.Print(sums)
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(sums), 0o644) //nolint:gosec // for everybody
}

func binaryName(command, version, system string) string {
	name := filepath.Base(command) + "_" + version + "_" + strings.ReplaceAll(system, "/", "_")
	if strings.HasPrefix(system, "windows/") {
		name += ".exe"
	}
	return name
}

func build(ctx context.Context, root, command, system, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	goos, goarch, _ := strings.Cut(system, "/")
	_, err = output(ctx, root, []string{"CGO_ENABLED=0", "GOOS=" + goos, "GOARCH=" + goarch, "GOFLAGS=", "GOWORK=off"},
		"go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", file, "./"+command)
	return err
}

// same is an error if two files differ.
func same(a, b string) error {
	one, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	other, err := os.ReadFile(b)
	if err != nil {
		return err
	}
	if sha256.Sum256(one) != sha256.Sum256(other) {
		return fmt.Errorf("%s is another file when it is built in another folder", filepath.Base(a))
	}
	return nil
}

// tellsVersion runs paddock, which has to name the version.
func (r *release) tellsVersion(ctx context.Context, dir, here string) error {
	if !slices.Contains(systems, here) {
		return nil
	}
	said, err := output(ctx, dir, nil, filepath.Join(dir, binaryName("cmd/paddock", r.version, here)), "version")
	if err == nil && !strings.HasPrefix(said, "paddock "+r.version+" ") {
		err = fmt.Errorf("the binary of %s says %q", r.version, said)
	}
	return err
}

// sumsOf are the checksums of the files in a folder.
func sumsOf(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, f := range files {
		if f.Name() == sumsFile {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return b.String(), nil
}
