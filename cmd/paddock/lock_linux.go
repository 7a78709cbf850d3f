package main

import "syscall"

// killWithParent lets the kernel kill a process with the thread that starts it.
func killWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// itself is the file of this program. The running one is meant, if it was replaced or
// removed meanwhile.
func itself() (string, error) { return "/proc/self/exe", nil }
