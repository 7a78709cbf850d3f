package locks

import (
	"strings"

	"github.com/paddock-zk/paddock/framework/monitor"
)

// noCopy makes go vet complain about a copy of what has it.
//
// Source: sync.noCopy.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// label is a lock for logs: its kind and its path, and never the data of its nodes.
func label(kind, path string, zero bool) string {
	if zero {
		return kind + " without a constructor"
	}
	return kind + " " + path
}

// String is the kind of the lock and its path, in full, for logs.
func (m *InterProcessMutex) String() string {
	if m.isZero() {
		return label(monitor.Mutex, "", true)
	}
	return label(m.queue.Recipe, m.path, false)
}

// String is the kind of the lock and its path, in full, for logs.
func (l *InterProcessReadWriteLock) String() string {
	if l.WriteLock().isZero() {
		return label("read/write lock", "", true)
	}
	return label("read/write lock", l.write.path, false)
}

// String is the kind of the lock and its path, in full, for logs.
func (s *InterProcessSemaphore) String() string {
	if s.isZero() {
		return label(monitor.Semaphore, "", true)
	}
	return label(s.leases.Recipe, s.path, false)
}

// String is the kind of the lock and its path, in full, for logs.
func (m *InterProcessSemaphoreMutex) String() string {
	if m.isNil() {
		return label(monitor.SemaphoreMutex, "", true)
	}
	return m.semaphore.String()
}

// String is the kind of the lock and the paths of its members, in full, for logs.
func (m *InterProcessMultiLock) String() string {
	if m == nil || len(m.members) == 0 {
		return label(monitor.MultiLock, "", true)
	}
	var paths []string
	for _, path := range m.paths {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return label(monitor.MultiLock, strings.Join(paths, ", "), false)
}

// String is the hold that the transaction rests on, for logs, without its operations.
func (t *Transaction) String() string { return "transaction under " + t.hold.String() }
