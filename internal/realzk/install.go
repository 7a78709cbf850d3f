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
}

// debianJars is where Debian's packages put their jars.
const debianJars = "/usr/share/java"

// serverJars are the jars that a server loads classes from. Those of Debian
// carry no version in their links' names, and zookeeper.jar's manifest names
// what else it may want, such as netty for TLS.
var serverJars = []string{
	"zookeeper.jar", "zookeeper-jute.jar", // the server and its records
	"slf4j-api.jar", "slf4j-simple.jar", // its log, to standard error
	"metrics-core.jar", "snappy-java.jar", // statistics, snapshots
}

// Find looks for Java and ZooKeeper: Java in JAVA_HOME, then in PATH, and
// ZooKeeper in the class path ZK_CLASSPATH (which may hold "dir/*", as java
// takes it) or else in Debian's folder. The error wraps ErrNotInstalled and
// names everything that is missing.
func Find() (Install, error) {
	return find(os.Getenv, debianJars)
}

func find(getenv func(string) string, jars string) (Install, error) {
	var in Install
	var missing []string
	var err error
	if in.Java, err = findJava(getenv); err != nil {
		missing = append(missing, err.Error())
	}
	entries, given := filepath.SplitList(getenv("ZK_CLASSPATH")), true
	if len(entries) == 0 {
		given = false
		for _, jar := range serverJars {
			entries = append(entries, filepath.Join(jars, jar))
		}
	}
	for _, entry := range entries {
		if _, err := os.Stat(strings.TrimSuffix(entry, "*")); err != nil {
			missing = append(missing, "no "+entry)
		}
	}
	in.ClassPath = strings.Join(entries, string(filepath.ListSeparator))
	if len(missing) == 0 {
		return in, nil
	}
	hint := "run `apt-get install libzookeeper-java default-jre-headless`, or set JAVA_HOME and ZK_CLASSPATH"
	if given {
		hint = "ZK_CLASSPATH is " + getenv("ZK_CLASSPATH")
	}
	return Install{}, fmt.Errorf("%w: %s (%s)", ErrNotInstalled, strings.Join(missing, ", "), hint)
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
