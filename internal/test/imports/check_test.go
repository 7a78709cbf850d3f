package imports

import (
	"fmt"
	"slices"
	"strings"
)

// pkg is what `go list -json` says of a package, its tests left out.
type pkg struct {
	ImportPath string
	Imports    []string // itself
	Deps       []string // itself or through others
}

// check returns a line for each breach of the rules, sorted.
func check(pkgs []pkg, rules []rule, testOnly []string) []string {
	breaches := make(map[string]bool)
	for _, p := range pkgs {
		folder, ours := folderOf(p.ImportPath)
		if !ours {
			continue
		}
		r, ok := ruleFor(folder, rules)
		if !ok {
			breaches[fmt.Sprintf("%s has no rule", folder)] = true
			continue
		}
		for _, path := range p.Imports {
			if !r.allows(path) {
				breaches[fmt.Sprintf("%s imports %s", folder, path)] = true
			}
		}
		for _, path := range p.Deps {
			if slices.ContainsFunc(r.never, func(never string) bool { return within(path, absolute(never)) }) ||
				slices.ContainsFunc(testOnly, func(tree string) bool { return within(path, tree) }) {
				breaches[fmt.Sprintf("%s reaches %s", folder, path)] = true
			}
		}
	}
	var lines []string
	for line := range breaches {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// ruleFor returns the rule of the innermost tree that a folder is in.
func ruleFor(folder string, rules []rule) (best rule, ok bool) {
	for _, r := range rules {
		if within(folder, r.tree) && (!ok || len(r.tree) > len(best.tree)) {
			best, ok = r, true
		}
	}
	return best, ok
}

func (r rule) allows(path string) bool {
	folder, ours := folderOf(path)
	switch {
	case ours:
		return slices.ContainsFunc(append([]string{r.tree}, r.ours...), func(tree string) bool { return within(folder, tree) })
	case isStandard(path):
		return true
	}
	return slices.ContainsFunc(r.modules, func(tree string) bool { return within(path, tree) })
}

// folderOf returns where in the module a package is, or false for others'.
func folderOf(path string) (folder string, ours bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func absolute(tree string) string {
	if folder, ok := strings.CutPrefix(tree, "./"); ok {
		return module + "/" + folder
	}
	return tree
}

func within(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

// isStandard tells packages of the standard library by their first element,
// which holds no dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
