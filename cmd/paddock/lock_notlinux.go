//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// killWithParent leaves it to the guard.
func killWithParent(*syscall.SysProcAttr) {}

// itself is the file of this program.
func itself() (string, error) { return os.Executable() }
