package main

import "syscall"

// killWithParent lets the kernel kill a process with the thread that starts it.
func killWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
