package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// row is one kind of failure.
type row struct {
	number  int
	failure string
	// reason says why nothing is planted, or not all of it.
	reason string
	faults []fault
}

// fault is one planted bug.
type fault struct {
	name string // what goes wrong
	// swaps are texts to be replaced; each must be found exactly once.
	swaps []swap
	// pkg has the tests expected to find it, and tests names them as go test's
	// -run does.
	pkg   string
	tests string
}

type swap struct{ file, old, now string }

// mutate returns the texts of the files that a mutant changes.
func (m *fault) mutate(root string) (map[string]string, error) {
	files := make(map[string]string)
	var errs []error
	for _, s := range m.swaps {
		text, ok := files[s.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, s.file))
			if err != nil {
				return nil, fmt.Errorf("mutant %q: %w", m.name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, s.old); n != 1 {
			errs = append(errs, fmt.Errorf("mutant %q: its text is in %s %d times and not once:\n%s", m.name, s.file, n, s.old))
			continue
		}
		files[s.file] = strings.Replace(text, s.old, s.now, 1)
	}
	return files, errors.Join(errs...)
}

// findRoot is the folder of the module that dir is in.
func findRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = above
	}
}
