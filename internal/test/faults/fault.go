package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fault is one planted bug: a patch file.
type fault struct {
	id      string // "07b": the second fault of row 7 of the catalogue of failures
	name    string // what goes wrong
	failure string // the row that it is in
	// pkg has the tests expected to find it, and tests names them as go test's
	// -run does.
	pkg   string
	tests string
	swaps []swap
}

// swap is one hunk: whole lines of a file that others take the place of.
type swap struct{ file, old, now string }

func (m *fault) row() string { return strings.TrimRight(m.id, "abcdefghijklmnopqrstuvwxyz") }

// corpus reads all patch files, in the order of their rows.
func corpus(root string) ([]fault, error) {
	files, err := filepath.Glob(filepath.Join(root, "internal/test/faults/*.patch"))
	if err != nil {
		return nil, err
	}
	var all []fault
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parse(filepath.Base(file), string(b))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b fault) int {
		return cmp.Or(cmp.Compare(len(a.row()), len(b.row())), cmp.Compare(a.id, b.id))
	})
	return all, nil
}

var (
	fileName = regexp.MustCompile(`^([0-9]{2,}[a-z])-[a-z0-9-]+\.patch$`)
	keyLine  = regexp.MustCompile(`^([A-Z][A-Za-z]*): (.*)$`)
)

// parse reads a patch: a line that says what goes wrong, a header, and a unified
// diff. Where its lines stand is found by their text, not by their numbers.
func parse(file, text string) (m fault, err error) {
	id := fileName.FindStringSubmatch(file)
	if id == nil {
		return m, errors.New("its name is not as 07b-what-goes-wrong.patch")
	}
	m.id = id[1]
	header, diff, found := strings.Cut(text, "\n--- ")
	if !found {
		return m, errors.New("it has no diff")
	}
	for i, line := range strings.Split(header, "\n") {
		key := keyLine.FindStringSubmatch(line)
		switch {
		case i == 0:
			m.name = line
		case line == "":
		case key != nil && key[1] == "Failure":
			m.failure = key[2]
		case key != nil && key[1] == "Package":
			m.pkg = key[2]
		case key != nil && key[1] == "Run":
			m.tests = key[2]
		default:
			return m, fmt.Errorf("its header says %q", line)
		}
	}
	if m.name == "" || m.failure == "" || m.pkg == "" || m.tests == "" {
		return m, errors.New("its header lacks a line: what goes wrong, Failure, Package or Run")
	}
	m.swaps, err = hunks("--- " + diff)
	return m, err
}

// hunks reads a unified diff of files that exist before and after it.
func hunks(diff string) (all []swap, err error) {
	file := ""
	for line := range strings.Lines(diff) {
		switch kind, rest := line[0], line[1:]; {
		case strings.HasPrefix(line, "--- a/"):
			file = strings.TrimSpace(line[len("--- a/"):])
		case line == "+++ b/"+file+"\n":
		case strings.HasPrefix(line, "@@ ") && file != "":
			all = append(all, swap{file: file})
		case len(all) == 0 || !strings.ContainsRune(" +-", rune(kind)):
			return nil, fmt.Errorf("its diff has the line %q", line)
		default:
			hunk := &all[len(all)-1]
			if kind != '+' {
				hunk.old += rest
			}
			if kind != '-' {
				hunk.now += rest
			}
		}
	}
	return all, nil
}

// mutate returns the texts of the files that a fault changes. The old lines of
// each hunk must be in their file exactly once, so that it goes where it belongs.
func (m *fault) mutate(root string) (map[string]string, error) {
	files := make(map[string]string)
	var errs []error
	for _, s := range m.swaps {
		text, ok := files[s.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, s.file))
			if err != nil {
				return nil, fmt.Errorf("%s, %q: %w", m.id, m.name, err)
			}
			text = string(b)
		}
		at := places(text, s.old)
		if len(at) != 1 {
			errs = append(errs, fmt.Errorf("%s, %q: these lines are in %s %d times and not once:\n%s", m.id, m.name, s.file, len(at), s.old))
			continue
		}
		files[s.file] = text[:at[0]] + s.now + text[at[0]+len(s.old):]
	}
	return files, errors.Join(errs...)
}

// places are where lines stand in a text.
func places(text, lines string) (at []int) {
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], lines) {
			at = append(at, i)
		}
		line, _, _ := strings.Cut(text[i:], "\n")
		i += len(line) + 1
	}
	return at
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
