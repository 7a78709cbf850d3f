package realzk

import "syscall"

// childAttr makes a child the leader of a process group, so that a Ctrl-C meant for
// the tests does not reach it before they have ended. The kernel kills the child
// when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
