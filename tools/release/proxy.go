package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy is the folder of the module proxy.
func (r *release) proxy() string { return filepath.Join(r.scratch, "proxy") }

// versions is the folder of the proxy that has the versions of a module.
func (r *release) versions(m *modFile) string {
	return filepath.Join(r.proxy(), filepath.FromSlash(m.path()), "@v")
}

// publish puts the released modules into the proxy, as their tags have them.
func (r *release) publish(ctx context.Context) error {
	for _, m := range r.released() {
		if err := r.publishModule(ctx, m, r.version, m.tag(r.version)); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	return nil
}

// publishModule puts one version into the proxy, as a revision has it. The proxy speaks
// the protocol of https://go.dev/ref/mod#goproxy-protocol.
func (r *release) publishModule(ctx context.Context, m *modFile, version, revision string) error {
	dir := r.versions(m)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	committed, err := output(ctx, r.root, nil, "git", "log", "-1", "--format=%cI", revision)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, committed)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": at.UTC()})
	if err != nil {
		return err
	}
	mod, err := output(ctx, r.root, nil, "git", "show", revision+":"+filepath.ToSlash(filepath.Join(m.dir, "go.mod")))
	if err != nil {
		return err
	}
	subdir := m.dir
	if subdir == "." {
		subdir = ""
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close() //nolint:errcheck // closed below where it matters
	if err := zip.CreateFromVCS(archive, module.Version{Path: m.path(), Version: version}, r.root, revision, subdir); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	for name, text := range map[string]string{version + ".info": string(info), version + ".mod": mod + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	list, err := os.OpenFile(filepath.Join(dir, "list"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(list, version)
	if closing := list.Close(); err == nil {
		err = closing
	}
	return err
}
