package docs

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each exported error stands on the page with its text.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	require.NoError(t, err)
	found := 0
	for _, dir := range public {
		for _, file := range sources(t, filepath.Join(root, dir)) {
			for name, value := range errorsOf(file) {
				found++
				assert.Contains(t, string(page), "| `"+textOf(t, file, value)+"` | `"+file.Name.Name+"."+name+"` |")
			}
		}
	}
	require.Greater(t, found, 30)
}

// sources are the files of a package, without tests.
func sources(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	return files
}

// errorsOf are the values of the variables of a file that are called as errors are.
func errorsOf(file *ast.File) map[string]ast.Expr {
	all := make(map[string]ast.Expr)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		for i := 0; ok && i < len(spec.Values); i++ {
			if name := spec.Names[i].Name; strings.HasPrefix(name, "Err") {
				all[name] = spec.Values[i]
			}
		}
		return true
	})
	return all
}

// imports are the files of packages that errors are taken from, by their paths.
var imports = make(map[string][]*ast.File)

// textOf is the text of an error that errors.New makes, there or in the package that it is
// taken from.
func textOf(t *testing.T, file *ast.File, value ast.Expr) string {
	t.Helper()
	if call, ok := value.(*ast.CallExpr); ok {
		text, ok := call.Args[0].(*ast.BasicLit)
		require.True(t, ok, "the text of an error is no literal")
		unquoted, err := strconv.Unquote(text.Value)
		require.NoError(t, err)
		return unquoted
	}
	of, ok := value.(*ast.SelectorExpr)
	require.True(t, ok, "an error is neither made by errors.New nor taken from another package")
	for _, imported := range file.Imports {
		from, err := strconv.Unquote(imported.Path.Value)
		require.NoError(t, err)
		if path.Base(from) != of.X.(*ast.Ident).Name { //nolint:forcetypeassert // it is a package
			continue
		}
		if imports[from] == nil {
			pkg, err := build.Import(from, root, build.FindOnly)
			require.NoError(t, err)
			imports[from] = sources(t, pkg.Dir)
		}
		for _, other := range imports[from] {
			if value := errorsOf(other)[of.Sel.Name]; value != nil {
				return textOf(t, other, value)
			}
		}
	}
	t.Fatalf("%s is nowhere", of.Sel.Name)
	return ""
}
