//go:build unix && !linux

package main

import "syscall"

// killWithParent leaves it to the guard.
func killWithParent(*syscall.SysProcAttr) {}
