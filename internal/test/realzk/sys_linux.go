package realzk

import "syscall"

// childAttr makes a child leader of a process group, so that a Ctrl-C meant
// for the tests does not reach it before they have ended, and has the kernel
// kill it when the thread that started it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
