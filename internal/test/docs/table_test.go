package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root = "../../.."
	page = root + "/docs/curator.md"
)

// world is what a page may name: "package.Name", "package.Type.Member",
// "package.TestName" and the cases "group/case".
type world map[string]bool

// public are the packages whose names users see.
var public = []string{"framework", "recipes/cache", "recipes/leader", "recipes/locks", "retry", "listeners", "testing"}

func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	w := look(t)
	require.Greater(t, len(w), 500)
	for _, wrong := range check(string(text), w) {
		t.Error(wrong)
	}
}

// look reads all sources of the module, also those with build tags.
func look(t *testing.T) world {
	t.Helper()
	w := make(world)
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != root && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case filepath.Ext(name) != ".go":
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		w.take(file, filepath.ToSlash(filepath.Dir(name)), strings.HasSuffix(name, "_test.go"))
		return nil
	})
	require.NoError(t, err)
	return w
}

// take notes what a file declares.
func (w world) take(file *ast.File, dir string, test bool) {
	pkg := strings.TrimSuffix(file.Name.Name, "_test")
	isPublic := slices.Contains(public, strings.TrimPrefix(dir, root+"/"))
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			switch {
			case test && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test"):
				w[pkg+"."+d.Name.Name] = true
			case !test && isPublic && d.Recv == nil:
				w[pkg+"."+d.Name.Name] = true
			case !test && isPublic:
				w[pkg+"."+receiver(d)+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if !test && isPublic {
						w.takeType(pkg, s)
					}
				case *ast.ValueSpec:
					for i, name := range s.Names {
						if !test && isPublic {
							w[pkg+"."+name.Name] = true
						}
						if pkg == "conformance" && name.Name == "cases" && i < len(s.Values) {
							w.takeCases(s.Values[i])
						}
					}
				}
			}
		}
	}
}

func receiver(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

func (w world) takeType(pkg string, s *ast.TypeSpec) {
	name := pkg + "." + s.Name.Name
	w[name] = true
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range st.Fields.List {
		for _, n := range field.Names {
			w[name+"."+n.Name] = true
		}
	}
}

// takeCases notes the names of the conformance cases.
func (w world) takeCases(list ast.Expr) {
	lit, ok := list.(*ast.CompositeLit)
	if !ok {
		return
	}
	for _, row := range lit.Elts {
		if c, ok := row.(*ast.CompositeLit); ok && len(c.Elts) > 0 {
			if s, ok := c.Elts[0].(*ast.BasicLit); ok {
				if name, err := strconv.Unquote(s.Value); err == nil {
					w[name] = true
				}
			}
		}
	}
}

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	ours     = regexp.MustCompile(`^(cache|framework|locks|retry|listeners|zktest)\.[A-Z]`)
	verdicts = []string{"same", "better", "different", "not there"}
	open     = regexp.MustCompile(`(?i)\b(to do|todo|tbd|open|later|planned)\b`)
)

// check returns what is wrong with a page.
func check(text string, w world) []string {
	var wrong []string
	var columns []string
	for i, line := range strings.Split(text, "\n") {
		say := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf("line %d: ", i+1)+fmt.Sprintf(format, args...))
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if ours.MatchString(m[1]) && !w[m[1]] {
				say("there is no %s", m[1])
			}
		}
		cells, isRow := row(line)
		switch {
		case !isRow:
			columns = nil
		case columns == nil:
			columns = cells
		case strings.Trim(strings.Join(cells, ""), "-: ") == "":
		case len(cells) != len(columns):
			say("%d cells under %d columns", len(cells), len(columns))
		case slices.Contains(columns, "verdict"):
			checkVerdict(cells, say)
		case columns[len(columns)-1] == "ours":
			checkTests(cells, w, say)
		}
	}
	return wrong
}

func row(line string) ([]string, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil, false
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, true
}

func checkVerdict(cells []string, say func(string, ...any)) {
	here, verdict, why := cells[1], cells[2], cells[3]
	switch {
	case !slices.Contains(verdicts, verdict):
		say("%q is no verdict", verdict)
	case verdict != "same" && why == "":
		say("%s, and no reason", verdict)
	case verdict != "not there" && here == "":
		say("%s, and nothing that it is", verdict)
	case open.MatchString(strings.Join(cells[2:], " ")):
		say("this is not finished: %s", why)
	}
}

// checkTests wants names of tests in the last cell, or why there is none.
func checkTests(cells []string, w world, say func(string, ...any)) {
	cell := cells[len(cells)-1]
	if reason, none := strings.CutPrefix(cell, "not there:"); none {
		if strings.TrimSpace(reason) == "" || open.MatchString(reason) {
			say("no test, and no reason")
		}
		return
	}
	names := quoted.FindAllStringSubmatch(cell, -1)
	if len(names) == 0 {
		say("no test is named")
	}
	for _, m := range names {
		if !w[m[1]] {
			say("there is no test %s", m[1])
		}
	}
	if rest := strings.Trim(quoted.ReplaceAllString(cell, ""), ", "); rest != "" {
		say("%q is no test", rest)
	}
}

// The check is shown what it must not stay silent about.
func TestCheck(t *testing.T) {
	w := world{"lock/try": true, "locks.TestA": true, "framework.Config": true, "framework.Config.ACL": true}
	const classes = "| Curator | here | verdict | |\n| --- | --- | --- | --- |\n"
	const tests = "| Curator's test | proves | ours |\n| --- | --- | --- |\n"
	for _, tc := range []struct {
		name, text string
		wrong      []string
	}{
		{"good", classes + "| `A` | `framework.Config.ACL` | same | |\n| `B` | | not there | because |\n\n" + tests + "| T.a | x | `lock/try`, `locks.TestA` |\n| T.b | x | not there: because |\n", nil},
		{"a test that was deleted", tests + "| T.a | x | `locks.TestGone` |", []string{"line 3: there is no locks.TestGone", "line 3: there is no test locks.TestGone"}},
		{"a case that was renamed", tests + "| T.a | x | `lock/tries` |", []string{"line 3: there is no test lock/tries"}},
		{"one of two", tests + "| T.a | x | `lock/try`, `lock/tries` |", []string{"line 3: there is no test lock/tries"}},
		{"no test", tests + "| T.a | x | |", []string{"line 3: no test is named"}},
		{"words", tests + "| T.a | x | `lock/try` mostly |", []string{`line 3: "mostly" is no test`}},
		{"no reason", tests + "| T.a | x | not there: |", []string{"line 3: no test, and no reason"}},
		{"to do", tests + "| T.a | x | not there: to do |", []string{"line 3: no test, and no reason"}},
		{"no verdict", classes + "| `A` | `framework.Config` | fine | |", []string{`line 3: "fine" is no verdict`}},
		{"no why", classes + "| `A` | | not there | |", []string{"line 3: not there, and no reason"}},
		{"nothing there", classes + "| `A` | | same | |", []string{"line 3: same, and nothing that it is"}},
		{"unfinished", classes + "| `A` | | not there | planned |", []string{"line 3: this is not finished: planned"}},
		{"a name that is gone", "text with `framework.Config.Gone`", []string{"line 1: there is no framework.Config.Gone"}},
		{"a cell too few", classes + "| `A` | same | |", []string{"line 3: 3 cells under 4 columns"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.wrong, check(tc.text, w))
		})
	}
}

func TestLook(t *testing.T) {
	w := look(t)
	for _, name := range []string{
		"framework.Config", "framework.Config.ACL", "framework.Client.Get", "locks.Do", "locks.Hold.Context", "retry.Forever", "listeners.Hub",
		"lock/try", "locks.TestRoundTrips", "interop.TestLoads", "robustness.TestMemberKilled", "zktest.Server.Stop", "docs.TestLook",
	} {
		assert.True(t, w[name], name)
	}
	assert.False(t, w["interop.Peer"])
}
