//go:build unix && !linux

package realzk

import "syscall"

// childAttr makes a child leader of a process group, so that a Ctrl-C meant
// for the tests does not reach it before they have ended. These systems cannot
// tie its life to ours: if the process dies without Close, servers remain.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
