package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/kit"
)

// newTerminal is a new terminal: what a person sees and types, and what a program has.
func newTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = person.Close() })
	var unlock, n int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &n} {
		_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(value)))
		require.Zero(t, failed)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return person, program
}

// After Ctrl-Z, a shell's kill sends the signal and then SIGCONT, and the kernel sends SIGHUP
// so when the terminal is closed. The command gets it.
func TestLockThatIsStoppedAtATerminalAndSignalled(t *testing.T) {
	s := newShell(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			mayBe(t, sig)
			person, program := newTerminal(t)
			p := s.startWith(t, func(c *exec.Cmd) {
				c.Stdin = program
				c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			}, s.self(t), "lock", "/l", "--", "sh", "-c", `echo ready; exec sleep 100`)
			require.NoError(t, program.Close())
			assert.Equal(t, "ready", p.line())
			_, err := person.WriteString("\x1a")
			require.NoError(t, err)
			var status syscall.WaitStatus
			_, err = syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil)
			require.NoError(t, err)
			require.True(t, status.Stopped())

			require.NoError(t, p.Process.Signal(sig))
			require.NoError(t, p.Process.Signal(syscall.SIGCONT))
			code, _ := p.ends()
			assert.Equal(t, 128+int(sig), code)
			assert.Empty(t, kit.Children(t, s.client(t), "/l"))
		})
	}
}
