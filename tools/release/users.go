package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// userEnv is the environment of somebody who gets modules from the proxy. Modules of other
// people come from the module cache of this machine, which is never written to, or from the
// network.
func (r *release) userEnv(ctx context.Context) ([]string, error) {
	env, err := output(ctx, r.root, nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	cache, network, _ := strings.Cut(env, "\n")
	return []string{
		"GOPROXY=file://" + filepath.ToSlash(r.proxy()) + ",file://" + filepath.ToSlash(cache) + "/cache/download," + network,
		"GOMODCACHE=" + filepath.Join(r.scratch, "modules"),
		"GOPATH=" + filepath.Join(r.scratch, "gopath"),
		"GONOSUMDB=" + r.modules[0].path(), "GONOPROXY=", "GOPRIVATE=", "GOWORK=off",
		"GOFLAGS=-modcacherw", // or the folder could not be removed
		"GOTOOLCHAIN=local",   // a module that needs a newer Go fails
	}, nil
}

// goCommand is the go command of a release of Go: the one on this machine, or the first of
// that release. The module proxy has them all.
func goCommand(ctx context.Context, release string) (string, error) {
	if strings.HasPrefix(runtime.Version()+".", "go"+release+".") {
		return "go", nil
	}
	root, err := output(ctx, ".", []string{"GOTOOLCHAIN=go" + release + ".0", "GOFLAGS="}, "go", "env", "GOROOT")
	return filepath.Join(root, "bin", "go"), err
}

// packages are the packages of a module that users can import, and its commands.
func (r *release) packages(ctx context.Context, m *modFile) (imports, commands []string, err error) {
	list, err := output(ctx, filepath.Join(r.root, m.dir), nil, "go", "list", "-f", "{{.Name}} {{.ImportPath}}", "./...")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(list) {
		name, importPath, _ := strings.Cut(strings.TrimSpace(line), " ")
		parts := strings.Split(strings.TrimPrefix(importPath, m.path()), "/")
		switch {
		case slices.Contains(parts, "internal") || slices.Contains(parts, "examples"):
		case name == "main":
			commands = append(commands, importPath)
		default:
			imports = append(imports, importPath)
		}
	}
	return imports, commands, nil
}

// use gets and builds each module in an empty one, with each Go, and installs its
// commands.
func (r *release) use(ctx context.Context) error {
	env, err := r.userEnv(ctx)
	if err != nil {
		return err
	}
	for _, version := range r.gos {
		command, err := goCommand(ctx, version)
		if err != nil {
			return err
		}
		for _, m := range r.released() {
			if err := r.useModule(ctx, env, command, m); err != nil {
				return fmt.Errorf("%s with Go %s: %w", m.path(), version, err)
			}
		}
	}
	return nil
}

func (r *release) useModule(ctx context.Context, env []string, command string, m *modFile) error {
	imports, commands, err := r.packages(ctx, m)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.scratch, "user")
	if err != nil {
		return err
	}
	program := "package main\n\nimport (\n"
	for _, name := range imports {
		program += "\t_ \"" + name + "\"\n"
	}
	for _, args := range [][]string{
		{"version"}, {"mod", "init", "user.example/program"}, {"get", m.path() + "@" + r.version},
		nil, {"mod", "tidy"}, {"vet", "."}, {"build", "-o", "program", "."},
	} {
		if args == nil {
			err = os.WriteFile(filepath.Join(dir, "main.go"), []byte(program+")\n\nfunc main() {}\n"), 0o600)
		} else {
			var out string
			out, err = output(ctx, dir, env, command, args...)
			if args[0] == "version" {
				fmt.Printf("%s: go get %s@%s, %d packages, %d commands\n", out, m.path(), r.version, len(imports), len(commands))
			}
		}
		if err != nil {
			return err
		}
	}
	for _, name := range commands {
		if _, err := output(ctx, dir, env, command, "install", name+"@"+r.version); err != nil {
			return err
		}
	}
	return nil
}
