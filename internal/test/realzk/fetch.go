//go:build unix

package realzk

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// The variables that say which ZooKeeper is run, where it is kept, and where
// it comes from.
const (
	suiteVar  = "ZK_SUITE"
	cacheVar  = "ZK_CACHE"
	mirrorVar = "ZK_MIRROR"
)

const (
	defaultMirror = "http://deb.debian.org/debian"
	current       = "current" // the link to what was fetched last
	fetchTries    = 3
)

// wanted are the packages to fetch, with the Java packages that they depend on.
var wanted = []string{
	"libzookeeper-java", "libslf4j-java", "libsnappy-java",
	"libcurator-client-java", "libcurator-framework-java", "libcurator-recipes-java", "libcurator-test-java",
}

// keyrings are where Debian keeps the keys that its archive is signed with.
var keyrings = []string{
	"/usr/share/keyrings/debian-archive-keyring.gpg",
	"/usr/share/keyrings/debian-archive-keyring.pgp",
}

// suiteName is what a suite's name may be: it becomes a folder's and a source's.
var suiteName = regexp.MustCompile(`^[a-z][a-z-]*$`)

// Fetched is what Fetch has brought.
type Fetched struct {
	Suite     string
	ZooKeeper string // versions of packages, such as "3.9.3-1+deb13u1"
	Curator   string
	Folder    string
}

// String is a line about it.
func (f Fetched) String() string {
	return fmt.Sprintf("%s: ZooKeeper %s, Curator %s, in %s", f.Suite, f.ZooKeeper, f.Curator, f.Folder)
}

// Fetch downloads ZooKeeper and Curator as a Debian suite has them now, and
// unpacks them into a folder of the user's cache, or below ZK_CACHE. The suite,
// such as "bookworm" or "sid", defaults to ZK_SUITE. Nothing is installed. If they are there already, only the
// lists of packages are downloaded. ZK_MIRROR chooses another mirror.
//
// apt does the work, with lists and settings of its own. It knows the machine's
// proxies. It checks the signature of the lists against the keys in the package
// debian-archive-keyring, and each package against its checksum in the lists. It
// does not look at or change the packages of the machine.
//
// Elsewhere than on Debian and its kin the error wraps ErrNotInstalled.
// Processes that fetch the same suite wait for each other.
func Fetch(ctx context.Context, suite string) (Fetched, error) {
	f := fetcher{
		suite: suite, getenv: os.Getenv, keyrings: keyrings, look: exec.LookPath,
		run: func(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil {
				err = fmt.Errorf("%s %s: %w\n%s", name, args[0], err, strings.TrimSpace(said.String()))
			}
			return out, err
		},
	}
	return f.fetch(ctx)
}

// fetched returns the folder with the jars of a suite.
func fetched(getenv func(string) string, suite string) (string, error) {
	folder, err := suiteFolder(getenv, suite)
	if err != nil {
		return "", err
	}
	jars := filepath.Join(folder, current, debianJars)
	if jars, err = filepath.EvalSymlinks(jars); err != nil {
		return "", fmt.Errorf("%s has not been fetched to %s", suite, folder)
	}
	return jars, nil
}

// suiteFolder is what is kept of a suite.
func suiteFolder(getenv func(string) string, suite string) (string, error) {
	if !suiteName.MatchString(suite) {
		return "", fmt.Errorf("%q is not the name of a Debian suite such as bookworm", suite)
	}
	cache := getenv(cacheVar)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w, and %s is not set", err, cacheVar)
		}
		cache = filepath.Join(user, "paddock-zookeeper")
	}
	return filepath.Join(cache, suite), nil
}

// fetcher fetches one suite.
type fetcher struct {
	suite    string
	getenv   func(string) string
	keyrings []string // the first that is there is used
	look     func(program string) (string, error)
	run      func(ctx context.Context, dir, name string, args ...string) (stdout []byte, err error)

	folder string   // of the suite
	apt    []string // arguments that keep apt away from the machine's own state
}

func (f *fetcher) fetch(ctx context.Context) (Fetched, error) {
	if f.suite == "" {
		f.suite = f.getenv(suiteVar)
	}
	var err error
	if f.folder, err = suiteFolder(f.getenv, f.suite); err != nil {
		return Fetched{}, err
	}
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := f.look(program); err != nil {
			return Fetched{}, fmt.Errorf("%w: no %s, which fetches packages of Debian; without it set ZK_CLASSPATH to a ZooKeeper's jars", ErrNotInstalled, program)
		}
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return Fetched{}, err
	}
	defer unlock()
	if err := f.prepare(); err != nil {
		return Fetched{}, err
	}
	// A suite may move on between its lists and its packages.
	for try := 1; ; try++ {
		got, err := f.once(ctx)
		if err == nil || try == fetchTries || ctx.Err() != nil {
			return got, err
		}
	}
}

// lock waits for other processes that fetch the same suite.
func (f *fetcher) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(f.folder, 0o755); err != nil {
		return nil, err
	}
	err = poll(ctx, func() (bool, error) {
		file, err := lockFile(filepath.Join(f.folder, lockName), os.O_CREATE)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		unlock = func() { _ = file.Close() } // nothing was written
		return err == nil, err
	})
	return unlock, err
}

// prepare gives apt a place of its own.
func (f *fetcher) prepare() error {
	var keyring string
	for _, k := range f.keyrings {
		if _, err := os.Stat(k); err == nil {
			keyring = k
			break
		}
	}
	if keyring == "" {
		return fmt.Errorf("%w: no %s, which the lists are checked with: run `apt-get install debian-archive-keyring`", ErrNotInstalled, f.keyrings[0])
	}
	mirror := f.getenv(mirrorVar)
	if mirror == "" {
		mirror = defaultMirror
	}
	dir := filepath.Join(f.folder, "apt")
	for _, d := range []string{"lists/partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	sources := filepath.Join(dir, "sources.list")
	line := fmt.Sprintf("deb [target=Packages signed-by=%s] %s %s main\n", keyring, mirror, f.suite)
	if err := errors.Join(
		os.WriteFile(sources, []byte(line), 0o644),
		os.WriteFile(filepath.Join(dir, "status"), nil, 0o644), // nothing is installed
	); err != nil {
		return err
	}
	for _, option := range []string{
		"Dir::Etc::sourcelist=" + sources,
		"Dir::Etc::sourceparts=/dev/null",
		"Dir::Etc::preferences=/dev/null",
		"Dir::Etc::preferencesparts=/dev/null",
		"Dir::State::lists=" + filepath.Join(dir, "lists"),
		"Dir::State::status=" + filepath.Join(dir, "status"),
		"Dir::Cache=" + dir,
		"Dir::Cache::archives=" + filepath.Join(dir, "archives"),
		"APT::Default-Release=",
		"APT::Sandbox::User=root", // apt's own user could not write to a folder of ours
		"Acquire::Retries=3",
		"Acquire::Languages=none",
		"Acquire::GzipIndexes=true", // a tenth of the size, and read seldom
	} {
		f.apt = append(f.apt, "-o", option)
	}
	return nil
}

// once fetches what the suite has now.
func (f *fetcher) once(ctx context.Context) (Fetched, error) {
	if _, err := f.run(ctx, f.folder, "apt-get", append([]string{"update", "--error-on=any"}, f.apt...)...); err != nil {
		return Fetched{}, err
	}
	depends, err := f.run(ctx, f.folder, "apt-cache", slices.Concat([]string{"depends", "--important"}, wanted, f.apt)...)
	if err != nil {
		return Fetched{}, err
	}
	names := javaPackages(wanted, depends)
	list, err := f.run(ctx, f.folder, "apt-get", slices.Concat([]string{"download", "--print-uris"}, names, f.apt)...)
	if err != nil {
		return Fetched{}, err
	}
	files := packageFiles(list)
	got := Fetched{Suite: f.suite, ZooKeeper: versionOf(files, "libzookeeper-java"), Curator: versionOf(files, "libcurator-recipes-java")}
	if got.ZooKeeper == "" || len(files) != len(names) {
		return Fetched{}, fmt.Errorf("apt-get lists %d of %d packages:\n%s", len(files), len(names), list)
	}
	// Other versions get another name, since a process may be using these.
	sum := sha256.Sum256([]byte(strings.Join(files, "\n")))
	name := fmt.Sprintf("%s-%x", got.ZooKeeper, sum[:6])
	got.Folder = filepath.Join(f.folder, name)
	if _, err := os.Stat(got.Folder); err != nil {
		if err := f.unpack(ctx, names, got.Folder); err != nil {
			return Fetched{}, err
		}
	}
	link := filepath.Join(f.folder, current+".new")
	_ = os.Remove(link) // left by a process that died
	if err := os.Symlink(name, link); err != nil {
		return Fetched{}, err
	}
	return got, os.Rename(link, filepath.Join(f.folder, current))
}

// unpack downloads packages and unpacks them into a folder, which appears when
// it is complete.
func (f *fetcher) unpack(ctx context.Context, names []string, folder string) (err error) {
	temp, err := os.MkdirTemp(f.folder, "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if _, err := f.run(ctx, temp, "apt-get", slices.Concat([]string{"download"}, names, f.apt)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(temp, "*.deb"))
	if err != nil {
		return err
	}
	root := filepath.Join(temp, "root")
	for _, deb := range debs {
		if _, err := f.run(ctx, temp, "dpkg-deb", "--extract", deb, root); err != nil {
			return err
		}
	}
	return os.Rename(root, folder)
}

// javaPackages returns the roots and the Java packages that `apt-cache
// depends` says they depend on. It asks for direct dependencies only: those
// further away are a runtime for Java, and hundreds of packages that nothing
// of ours needs.
func javaPackages(roots []string, depends []byte) []string {
	names := slices.Clone(roots)
	lines := bufio.NewScanner(bytes.NewReader(depends))
	for lines.Scan() {
		_, name, ok := strings.Cut(lines.Text(), "Depends: ")
		if ok && strings.HasPrefix(name, "lib") && strings.HasSuffix(name, "-java") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// packageFiles returns what `apt-get download --print-uris` says about each
// package: the name of its file, which has the version, and its checksum.
func packageFiles(list []byte) []string {
	var files []string
	lines := bufio.NewScanner(bytes.NewReader(list))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 4 && strings.HasPrefix(f[0], "'") {
			files = append(files, f[1]+" "+f[3])
		}
	}
	slices.Sort(files)
	return files
}

// versionOf returns the version of a package among packageFiles.
func versionOf(files []string, name string) string {
	for _, file := range files {
		if rest, ok := strings.CutPrefix(file, name+"_"); ok {
			version, _, _ := strings.Cut(rest, "_")
			return version
		}
	}
	return ""
}
