//go:build unix

package realzk

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// jar writes a jar whose manifest names others, in lines of 72 bytes as Java
// has them.
func jar(t *testing.T, file string, named ...string) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	w := zip.NewWriter(f)
	if len(named) > 0 {
		m, err := w.Create("META-INF/MANIFEST.MF")
		require.NoError(t, err)
		text := "Class-Path: " + strings.Join(named, " ")
		var lines []string
		for len(text) > 72 {
			lines = append(lines, text[:72])
			text = " " + text[72:]
		}
		_, err = m.Write([]byte("Manifest-Version: 1.0\r\n" + strings.Join(append(lines, text), "\r\n") + "\r\nCreated-By: Maven\r\n"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

func TestClassPath(t *testing.T) {
	dir := t.TempDir()
	at := func(names ...string) string {
		for i, name := range names {
			names[i] = filepath.Join(dir, name)
		}
		return strings.Join(names, string(filepath.ListSeparator))
	}
	jar(t, at("jute.jar"))
	jar(t, at("log.jar"))
	jar(t, at("zookeeper.jar"), "/usr/share/java/a-long-name-of-what-is-not-there.jar", "/usr/share/java/jute.jar", "log.jar")
	jar(t, at("curator.jar"), "/usr/share/java/zookeeper.jar", "/usr/share/java/jute.jar", "/usr/share/java/curator.jar")

	path, err := classPath(dir, []string{"curator.jar", "log.jar"})
	require.NoError(t, err)
	assert.Equal(t, at("jute.jar", "log.jar", "zookeeper.jar", "curator.jar"), path, "what a jar names comes first")
	_, err = classPath(dir, []string{"none.jar", "jute.jar", "other.jar"})
	require.EqualError(t, err, "no "+at("none.jar")+", no "+at("other.jar"))
	require.NoError(t, os.WriteFile(at("broken.jar"), []byte("text"), 0o644))
	_, err = classPath(dir, []string{"broken.jar"})
	require.ErrorContains(t, err, "broken.jar: zip: not a valid zip file")
}
