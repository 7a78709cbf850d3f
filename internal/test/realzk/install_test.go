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
	cache := t.TempDir()
	unpacked := filepath.Join(cache, "trixie", "3.9.3-1", debianJars)
	require.NoError(t, os.MkdirAll(unpacked, 0o755))
	require.NoError(t, os.Symlink("3.9.3-1", filepath.Join(cache, "trixie", current)))
	for _, name := range serverJars {
		jar(t, filepath.Join(jars, name))
		jar(t, filepath.Join(unpacked, name))
	}
	jar(t, filepath.Join(unpacked, "curator-recipes.jar"), "/usr/share/java/zookeeper.jar")
	require.NoError(t, os.Symlink("curator-recipes.jar", filepath.Join(unpacked, "curator-recipes-5.7.1.jar")))
	fewer := t.TempDir()
	jar(t, filepath.Join(fewer, "zookeeper.jar"))
	empty := t.TempDir()

	for _, tc := range []struct {
		name      string
		env       map[string]string
		suite     string
		jars      string
		classPath string   // of a success
		says      []string // of a failure
	}{
		{"debian", map[string]string{"JAVA_HOME": home}, "", jars, filepath.Join(jars, serverJars[0]) + ":", nil},
		{"a suite", map[string]string{"JAVA_HOME": home, "ZK_CACHE": cache}, "trixie", empty, filepath.Join(unpacked, serverJars[0]) + ":", nil},
		{"a suite by variable", map[string]string{"JAVA_HOME": home, "ZK_CACHE": cache, "ZK_SUITE": "trixie"}, "", jars, filepath.Join(unpacked, serverJars[0]) + ":", nil},
		{"a suite not fetched", map[string]string{"JAVA_HOME": home, "ZK_CACHE": cache}, "sid", jars, "", []string{"sid has not been fetched to " + filepath.Join(cache, "sid"), "zkensemble -suite sid -fetch"}},
		{"no suite", map[string]string{"JAVA_HOME": home, "ZK_CACHE": cache}, "../trixie", jars, "", []string{`"../trixie" is not the name`}},
		{"a suite and a class path", map[string]string{"JAVA_HOME": home, "ZK_SUITE": "trixie", "ZK_CLASSPATH": jars + "/*"}, "", jars, "", []string{"choose one"}},
		{"class path given", map[string]string{"JAVA_HOME": home, "ZK_CLASSPATH": jars + "/*:" + fewer}, "", empty, jars + "/*:" + fewer, nil},
		{"no java there", map[string]string{"JAVA_HOME": empty}, "", jars, "", []string{"no " + empty + "/bin/java (JAVA_HOME)", "apt-get install"}},
		{"no zookeeper", map[string]string{"JAVA_HOME": home}, "", empty, "", []string{"no " + empty + "/zookeeper.jar", "apt-get install libzookeeper-java default-jre-headless", "ZK_CLASSPATH"}},
		{"some jars only", map[string]string{"JAVA_HOME": home}, "", fewer, "", []string{"no " + fewer + "/snappy-java.jar"}},
		{"wrong class path", map[string]string{"JAVA_HOME": home, "ZK_CLASSPATH": empty + "/none/*"}, "", jars, "", []string{"no " + empty + "/none/*", "(ZK_CLASSPATH is "}},
		{"nothing", nil, "", empty, "", []string{"no java in PATH", "zookeeper.jar"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("PATH", empty)
			in, err := find(func(key string) string { return tc.env[key] }, tc.suite, tc.jars)
			if tc.says == nil {
				require.NoError(t, err)
				assert.Equal(t, java, in.Java)
				assert.True(t, strings.HasPrefix(in.ClassPath, tc.classPath), in.ClassPath)
				path, err := in.With("curator-recipes.jar")
				if tc.suite == "" && tc.env["ZK_SUITE"] == "" {
					require.ErrorIs(t, err, ErrNotInstalled)
					assert.Equal(t, "unknown", in.VersionOf("curator-recipes.jar"))
					return
				}
				assert.Equal(t, "5.7.1", in.VersionOf("curator-recipes.jar"))
				require.NoError(t, err)
				assert.Equal(t, filepath.Join(unpacked, "zookeeper.jar")+":"+filepath.Join(unpacked, "curator-recipes.jar"), path)
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
