//go:build unix

package realzk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	home, jars := t.TempDir(), t.TempDir()
	java := filepath.Join(home, "bin", "java")
	require.NoError(t, os.Mkdir(filepath.Dir(java), 0o755))
	touch(t, java)
	for _, jar := range serverJars {
		touch(t, filepath.Join(jars, jar))
	}
	fewer := t.TempDir()
	touch(t, filepath.Join(fewer, "zookeeper.jar"))
	empty := t.TempDir()

	for _, tc := range []struct {
		name      string
		env       map[string]string
		jars      string
		classPath string   // of a success
		says      []string // of a failure
	}{
		{"debian", map[string]string{"JAVA_HOME": home}, jars, filepath.Join(jars, "zookeeper.jar") + ":", nil},
		{"class path given", map[string]string{"JAVA_HOME": home, "ZK_CLASSPATH": jars + "/*:" + fewer}, empty, jars + "/*:" + fewer, nil},
		{"no java there", map[string]string{"JAVA_HOME": empty}, jars, "", []string{"no " + empty + "/bin/java (JAVA_HOME)", "apt-get install"}},
		{"no zookeeper", map[string]string{"JAVA_HOME": home}, empty, "", []string{"no " + empty + "/zookeeper.jar", "apt-get install libzookeeper-java default-jre-headless", "ZK_CLASSPATH"}},
		{"some jars only", map[string]string{"JAVA_HOME": home}, fewer, "", []string{"no " + fewer + "/snappy-java.jar"}},
		{"wrong class path", map[string]string{"JAVA_HOME": home, "ZK_CLASSPATH": empty + "/none/*"}, jars, "", []string{"no " + empty + "/none/*", "(ZK_CLASSPATH is "}},
		{"nothing", nil, empty, "", []string{"no java in PATH", "zookeeper.jar"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("PATH", empty)
			in, err := find(func(key string) string { return tc.env[key] }, tc.jars)
			if tc.says == nil {
				require.NoError(t, err)
				assert.Equal(t, java, in.Java)
				assert.True(t, strings.HasPrefix(in.ClassPath, tc.classPath), in.ClassPath)
				return
			}
			require.ErrorIs(t, err, ErrNotInstalled)
			for _, words := range tc.says {
				assert.ErrorContains(t, err, words)
			}
		})
	}
}

func touch(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, nil, 0o755))
}
