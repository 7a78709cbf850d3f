//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// terminal is the one that this process is in the foreground of, nil for none. Its
// foreground is lent to a command's process group, as a shell does.
type terminal struct {
	fd  int
	own int // our process group
}

// terminalOf is the terminal that a file is, if this process is in its foreground.
func terminalOf(file *os.File) *terminal {
	if !isTerminal(file) {
		return nil
	}
	t := &terminal{int(file.Fd()), syscall.Getpgrp()}
	if group, err := t.foreground(); err != nil || group != t.own {
		return nil
	}
	return t
}

// giveTo makes a process begin in the foreground.
func (t *terminal) giveTo(attr *syscall.SysProcAttr) {
	if t != nil {
		attr.Foreground, attr.Ctty = true, t.fd
	}
}

// lent lets this process take the foreground back later: from the background, that would
// stop it. It comes after the command has begun, which would ignore the signal as well.
func (t *terminal) lent() {
	if t != nil {
		signal.Ignore(syscall.SIGTTOU)
	}
}

// move puts one process group into the foreground if the other is there now: the shell
// may have put us into the background.
func (t *terminal) move(from, to int) {
	if t == nil {
		return
	}
	if now, err := t.foreground(); err == nil && now == from {
		g := int32(to) //nolint:gosec // process ids fit
		_ = t.ioctl(syscall.TIOCSPGRP, &g)
	}
}

// restore takes the foreground back for good from a process group.
func (t *terminal) restore(group int) {
	if t != nil {
		t.move(group, t.own)
		signal.Reset(syscall.SIGTTOU)
	}
}

func (t *terminal) foreground() (int, error) {
	var g int32
	err := t.ioctl(syscall.TIOCGPGRP, &g)
	return int(g), err
}

func (t *terminal) ioctl(request uintptr, group *int32) error {
	if _, _, err := syscall.Syscall(syscall.SYS_IOCTL, uintptr(t.fd), request, uintptr(unsafe.Pointer(group))); err != 0 {
		return err
	}
	return nil
}

// sizeOf is how many columns and rows a terminal has, 0 for anything else.
func sizeOf(stream any) (columns, rows int) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, 0
	}
	var size struct{ rows, columns, x, y uint16 }
	if _, _, err := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size))); err != 0 {
		return 0, 0
	}
	return int(size.columns), int(size.rows)
}
