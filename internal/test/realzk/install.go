//go:build unix

package realzk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNotInstalled reports that Java or ZooKeeper is missing; the error around
// it names what, and what to install.
var ErrNotInstalled = errors.New("a real ZooKeeper cannot be run here")

// Install is what it takes to run a server.
type Install struct {
	Java      string // path of the program
	ClassPath string // as java -cp takes it

	jars string // the folder of the class path's jars; "" if ZK_CLASSPATH named them
}

// debianJars is where Debian's packages put their jars.
const debianJars = "/usr/share/java"

// serverJars are what a server needs: itself, and what it uses without naming
// it in its manifest. Debian's links to the jars carry no version in their names.
var serverJars = []string{
	"slf4j-simple.jar", "slf4j-api.jar", // its log, to standard error
	"metrics-core.jar", "snappy-java.jar", // statistics, snapshots
	"netty-codec.jar", "netty-resolver.jar", "netty-transport-native-unix-common.jar", // TLS
	"zookeeper-jute.jar", "zookeeper.jar", // its records and the server
}

// Find looks for Java and for ZooKeeper. It looks for Java in JAVA_HOME, then in
// PATH. It takes the ZooKeeper of the Debian suite that is given here or in
// ZK_SUITE, which Fetch must have fetched. Without a suite it takes the one in the
// class path ZK_CLASSPATH, which may hold "dir/*" as java takes it, or else the one
// among the packages of this machine. The error wraps ErrNotInstalled and names
// everything that is missing.
func Find(suite string) (Install, error) {
	return find(os.Getenv, suite, debianJars)
}

func find(getenv func(string) string, suite, installed string) (Install, error) {
	var missing []string
	java, err := findJava(getenv)
	if err != nil {
		missing = append(missing, err.Error())
	}
	if suite == "" {
		suite = getenv(suiteVar)
	}
	given := getenv("ZK_CLASSPATH")
	var in Install
	var hint string
	switch {
	case suite != "" && given != "":
		return Install{}, fmt.Errorf("%w: the suite %s is asked for and ZK_CLASSPATH is set: choose one", ErrNotInstalled, suite)
	case suite != "":
		hint = fmt.Sprintf("run `go run ./internal/test/realzk/cmd/zkensemble -suite %s -fetch`, and `apt-get install default-jre-headless` for Java", suite)
		if in.jars, err = fetched(getenv, suite); err != nil {
			missing = append(missing, err.Error())
		}
	case given != "":
		hint = "ZK_CLASSPATH is " + given
		in.ClassPath = given
		for _, entry := range filepath.SplitList(given) {
			if _, err := os.Stat(strings.TrimSuffix(entry, "*")); err != nil {
				missing = append(missing, "no "+entry)
			}
		}
	default:
		hint = "run `apt-get install libzookeeper-java default-jre-headless`, or set JAVA_HOME and ZK_SUITE or ZK_CLASSPATH"
		in.jars = installed
	}
	if in.jars != "" {
		if in.ClassPath, err = classPath(in.jars, serverJars); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if len(missing) > 0 {
		return Install{}, fmt.Errorf("%w: %s (%s)", ErrNotInstalled, strings.Join(missing, ", "), hint)
	}
	in.Java = java
	return in, nil
}

func findJava(getenv func(string) string) (string, error) {
	if home := getenv("JAVA_HOME"); home != "" {
		java := filepath.Join(home, "bin", "java")
		if _, err := exec.LookPath(java); err != nil {
			return "", fmt.Errorf("no %s (JAVA_HOME)", java)
		}
		return java, nil
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("no java in PATH")
	}
	return java, nil
}

// With returns a class path of further jars from the same packages as the
// server's, such as "curator-recipes.jar", and of what these need. The error
// wraps ErrNotInstalled.
func (in Install) With(jars ...string) (string, error) {
	if in.jars == "" {
		return "", fmt.Errorf("%w: ZK_CLASSPATH does not say where %s is", ErrNotInstalled, strings.Join(jars, ", "))
	}
	path, err := classPath(in.jars, jars)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return path, nil
}

// VersionOf returns the version of a jar of these packages, such as "5.7.1" of
// "curator-recipes.jar", or "unknown".
func (in Install) VersionOf(jar string) string {
	name := strings.TrimSuffix(jar, ".jar")
	// Debian links each jar under its name with the version, too.
	links, err := filepath.Glob(filepath.Join(in.jars, name+"-[0-9]*.jar"))
	if in.jars == "" || err != nil || len(links) != 1 {
		return "unknown"
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(links[0]), name+"-"), ".jar")
}
