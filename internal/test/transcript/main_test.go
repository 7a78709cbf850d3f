package transcript

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares a text with a file in testdata, or writes it there.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if string(want) != got {
		t.Errorf("%s has changed; if that is meant, run the tests with -update\n%s", file, difference(string(want), got))
	}
}

// difference is what two texts do not have in common at the begin and at the end.
func difference(want, got string) string {
	a, b := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	a, b = a[same:], b[same:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	const most = 10 // lines of each
	var text strings.Builder
	fmt.Fprintf(&text, "from line %d on:\n", same+1)
	for _, side := range []struct {
		mark  string
		lines []string
	}{{"-", a}, {"+", b}} {
		for i, line := range side.lines {
			if i == most {
				fmt.Fprintf(&text, "%s %d more\n", side.mark, len(side.lines)-most)
				break
			}
			fmt.Fprintf(&text, "%s %s\n", side.mark, strings.TrimSuffix(line, "\n"))
		}
	}
	return text.String()
}
