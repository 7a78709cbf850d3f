//go:build realzk

package robustness

import (
	"syscall"
	"unsafe"
)

// stamp is the time on a clock that all processes of this machine share and
// nobody sets, in nanoseconds: CLOCK_MONOTONIC.
func stamp() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return ts.Nano()
}
