//go:build interop

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/paddock-zk/paddock/internal/test/realzk"
)

// java is a Java with our programs, compiled in this run.
type java struct {
	program   string
	classPath string
	dir       string
	curator   string // its version
}

const installHint = "run `apt-get install libcurator-recipes-java default-jdk-headless python3-kazoo`, or set ZK_SUITE or CURATOR_CLASSPATH, and JAVA_HOME"

// findCurator returns a class path with Curator: CURATOR_CLASSPATH, or the
// Curator from the same Debian suite as the server. It also returns its version.
func findCurator() (classPath, version string, err error) {
	if given := os.Getenv("CURATOR_CLASSPATH"); given != "" {
		return given, "of CURATOR_CLASSPATH", nil
	}
	install, err := realzk.Find("")
	if err != nil {
		return "", "", err
	}
	path, err := install.With("slf4j-simple.jar", "curator-recipes.jar")
	if err != nil {
		return "", "", fmt.Errorf("%w (%s)", err, installHint)
	}
	return path, install.VersionOf("curator-recipes.jar"), nil
}

// tool finds a program of the JDK.
func tool(name string) (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return exec.LookPath(filepath.Join(home, "bin", name))
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w (%s)", err, installHint)
	}
	return path, nil
}

// compile compiles the programs in folder java.
func compile(ctx context.Context, dir string) (*java, error) {
	curator, version, err := findCurator()
	if err != nil {
		return nil, err
	}
	program, err := tool("java")
	if err != nil {
		return nil, err
	}
	javac, err := tool("javac")
	if err != nil {
		return nil, err
	}
	sources, err := filepath.Glob("java/*.java")
	if err != nil || len(sources) == 0 {
		return nil, errors.Join(errors.New("no programs in folder java"), err)
	}
	args := append([]string{"-nowarn", "-encoding", "UTF-8", "-d", dir, "-cp", curator}, sources...)
	cmd := exec.CommandContext(ctx, javac, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("javac: %w\n%s", err, &said)
	}
	return &java{program: program, classPath: dir + string(filepath.ListSeparator) + curator, curator: version}, nil
}

// command is what starts one of our programs.
func (j *java) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, j.program, append([]string{
		"-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", j.classPath,
	}, args...)...)
}

// kazooPython is a Python that has kazoo.
func kazooPython(ctx context.Context) (string, error) {
	var failed error
	for _, name := range []string{os.Getenv("PYTHON"), "python3", "/usr/bin/python3"} {
		if name == "" {
			continue
		}
		out, err := exec.CommandContext(ctx, name, "-c", "import kazoo.client").CombinedOutput()
		if err == nil {
			return name, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w: %s", name, err, out))
	}
	return "", fmt.Errorf("no Python with kazoo (%s): %w", installHint, failed)
}
