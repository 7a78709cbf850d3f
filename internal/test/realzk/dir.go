//go:build unix

package realzk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const (
	dirPrefix = "paddock-realzk-"
	lockName  = "lock"
	memoryDir = "/dev/shm" // on Linux, a file system in memory
)

// dataDir is the folder of an ensemble, locked for as long as it is in use.
type dataDir struct {
	path string
	lock *os.File
}

// newDataDir makes a folder below parent, or below a default for "". Before
// that it removes those that were left by processes which died without
// removing them: data in memory would otherwise pile up.
func newDataDir(parent string) (*dataDir, error) {
	if parent == "" {
		parent = os.TempDir()
		if info, err := os.Stat(memoryDir); err == nil && info.IsDir() {
			parent = memoryDir
		}
	}
	if err := sweep(parent); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return nil, err
	}
	// The name that sweep looks for appears when the lock is held.
	name := filepath.Join(path, lockName)
	lock, err := lockFile(name+".new", os.O_CREATE)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	d := &dataDir{path, lock}
	if err := os.Rename(name+".new", name); err != nil {
		return nil, errors.Join(err, d.remove())
	}
	return d, nil
}

// remove removes the folder and all in it.
func (d *dataDir) remove() error {
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}

// sweep removes folders whose lock nobody holds. One without a lock is about
// to get it.
func sweep(parent string) error {
	locks, err := filepath.Glob(filepath.Join(parent, dirPrefix+"*", lockName))
	if err != nil {
		return err
	}
	for _, name := range locks {
		lock, err := lockFile(name, 0)
		if err != nil {
			continue // in use, somebody else's, or just removed
		}
		if err := (&dataDir{filepath.Dir(name), lock}).remove(); err != nil {
			return err
		}
	}
	return nil
}

// lockFile opens a file and takes the lock that the kernel gives up when the
// file is closed, at the latest with the process; children do not inherit it.
func lockFile(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
