//go:build unix

package realzk

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// classPath returns a class path of jars in a folder, and of the jars that
// their manifests name as far as the folder has them.
//
// Debian's manifests name jars by where Debian installs them. In a folder of
// another Debian these would be the wrong ones, and Java looks there before it
// goes on along the class path. So what a jar names comes before the jar.
func classPath(folder string, jars []string) (string, error) {
	var path, missing []string
	seen := make(map[string]bool)
	var add func(jar string) error
	add = func(jar string) error {
		if seen[jar] {
			return nil
		}
		seen[jar] = true
		file := filepath.Join(folder, jar)
		named, err := manifestClassPath(file)
		if err != nil {
			if slices.Contains(jars, jar) && errors.Is(err, fs.ErrNotExist) {
				missing = append(missing, "no "+file)
				return nil
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // one that these programs do without
			}
			return err
		}
		for _, other := range named {
			if err := add(filepath.Base(other)); err != nil {
				return err
			}
		}
		path = append(path, file)
		return nil
	}
	for _, jar := range jars {
		if err := add(jar); err != nil {
			return "", err
		}
	}
	if len(missing) > 0 {
		return "", errors.New(strings.Join(missing, ", "))
	}
	return strings.Join(path, string(filepath.ListSeparator)), nil
}

// manifestClassPath returns the jars that a jar's manifest names.
func manifestClassPath(file string) (_ []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	jar, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	manifest, err := jar.Open("META-INF/MANIFEST.MF")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	text, err := io.ReadAll(manifest)
	if err := errors.Join(err, manifest.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	// A line that begins with a space goes on where the one before ended.
	lines := strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n ", "")
	for line := range strings.Lines(lines) {
		if names, ok := strings.CutPrefix(line, "Class-Path:"); ok {
			return strings.Fields(names), nil
		}
	}
	return nil, nil
}
