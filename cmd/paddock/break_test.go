package main

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func TestBreak(t *testing.T) {
	s := newShell(t)
	first, second := s.client(t), s.client(t)
	held := kit.Hold(t, locks.NewInterProcessMutex(first, "/locks/orders", locks.NodeData([]byte("stuck"))))
	s.wait(t, locks.NewInterProcessMutex(second, "/locks/orders"), "/locks/orders", 2)

	code, out, errs := s.run(t, "break", "/locks/orders")
	assert.Equal(t, exitUsage, code, "nobody can be asked")
	assert.Contains(t, errs, "--yes")
	assert.Contains(t, errs, held.Path())
	assert.Empty(t, out)
	require.Equal(t, locks.Held, held.State())

	code, out, errs = s.run(t, "break", "--yes", "/locks/orders")
	require.Equal(t, 0, code, errs)
	assert.Equal(t, "deleted "+held.Path()+"\n", out)
	assert.Contains(t, errs, ": stuck\n")
	<-held.Context().Done()
	require.ErrorIs(t, held.Err(), locks.ErrLockLost)
}

func TestBreakOneParticipant(t *testing.T) {
	s := newShell(t)
	first, second := s.client(t), s.client(t)
	held := kit.Hold(t, locks.NewInterProcessSemaphore(first, "/sem", 2))
	other := kit.Hold(t, locks.NewInterProcessSemaphore(second, "/sem", 2))
	out := s.ok(t, "break", "--yes", "--json", held.Path())
	done := decode[[]map[string]any](t, out)
	require.Len(t, done, 1)
	assert.Equal(t, held.Path(), done[0]["node"])
	assert.Equal(t, true, done[0]["deleted"])
	<-held.Context().Done()
	assert.Equal(t, locks.Held, other.State())
	s.ok(t, "break", "--yes", "--all", "/sem")
	<-other.Context().Done()
}

func TestBreakRefusesWhatIsNoLock(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	_, err := client.Create(t.Context(), "/app/config", nil, framework.Persistent, framework.Parents())
	require.NoError(t, err)
	for path, want := range map[string]int{
		"/": exitNoLock, "/app": exitNoLock, "/app/config": exitNoLock, "/nowhere": exitNotFound,
		"/app/lock-0000000001": exitNoLock, "/nowhere/lock-0000000001": exitNotFound,
	} {
		code, _, errs := s.run(t, "break", "--yes", path)
		assert.Equal(t, want, code, "%s: %s", path, errs)
	}
	there, _, err := client.Exists(t.Context(), "/app/config")
	require.NoError(t, err)
	assert.True(t, there)
	kit.Hold(t, locks.NewInterProcessMutex(client, "/locks/orders"))
	code, _, _ := s.run(t, "break", "--yes", "/locks/orders/x-lock-0000000009")
	assert.Equal(t, exitNotFound, code)
	code, _, _ = s.run(t, "break", "--yes", "--all", "/locks/orders/x-lock-0000000009")
	assert.Equal(t, exitUsage, code)
}

func TestWatch(t *testing.T) {
	s := newShell(t)
	first, second := s.client(t), s.client(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		var errs strings.Builder
		code <- run(ctx, []string{"watch", "--json", "/locks/orders"}, system{
			in: strings.NewReader(""), out: w, err: &errs, getenv: func(k string) string { return s.env[k] },
		})
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	next := func() map[string]any {
		require.True(t, lines.Scan())
		return decode[map[string]any](t, lines.Text())
	}
	assert.Equal(t, "CONNECTED", next()["event"])
	held, err := locks.NewInterProcessMutex(first, "/locks/orders").Acquire(t.Context())
	require.NoError(t, err)
	c := next()
	assert.Equal(t, "holds", c["event"])
	assert.Equal(t, held.Path(), c["node"])
	s.wait(t, locks.NewInterProcessMutex(second, "/locks/orders"), "/locks/orders", 2)
	c = next()
	waiter := c["node"]
	assert.Equal(t, "waits", c["event"])
	assert.Equal(t, held.Path(), c["behind"])
	require.NoError(t, held.Release())
	c = next()
	assert.Equal(t, "gone", c["event"])
	assert.Equal(t, held.Path(), c["node"])
	c = next()
	if c["event"] == "holds" { // it released at once, which may be one change
		assert.Equal(t, waiter, c["node"])
		c = next()
	}
	assert.Equal(t, "gone", c["event"])
	assert.Equal(t, waiter, c["node"])
	sem := locks.NewInterProcessSemaphore(first, "/sem", 1) // of another path: no line
	other, err := sem.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, other.Release())
	s.DisconnectAll()
	assert.Equal(t, "SUSPENDED", next()["event"])
	assert.Equal(t, "RECONNECTED", next()["event"])
	cancel()
	for lines.Scan() {
		t.Error("unexpected", lines.Text())
	}
	assert.Equal(t, exitInterrupted, <-code)
}

func TestWatchOfASemaphore(t *testing.T) {
	s := newShell(t)
	client := s.client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx, []string{"watch", "/sem", "--semaphore", "1"}, system{in: strings.NewReader(""), out: w, err: io.Discard, getenv: func(k string) string { return s.env[k] }})
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	expect := func(event string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), "  "+event) {
				return
			}
		}
		t.Errorf("no line with %s", event)
	}
	expect("CONNECTED")
	h, err := locks.NewInterProcessSemaphore(client, "/sem", 1, locks.NodeData([]byte("me"))).Acquire(ctx)
	require.NoError(t, err)
	expect("holds")
	require.NoError(t, h.Release())
	expect("gone")
	cancel()
	for lines.Scan() {
	}
	<-done
}

func TestCompletion(t *testing.T) {
	s := new(shell)
	for _, v := range verbs() {
		for _, of := range []string{"bash", "zsh", "fish"} {
			assert.Contains(t, s.ok(t, "completion", of), v.name)
		}
	}
	code, _, errs := s.run(t, "completion", "tcsh")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "bash, zsh, fish")
	for _, of := range []string{"bash", "zsh", "fish"} {
		name, err := exec.LookPath(of)
		if err != nil {
			t.Logf("%s is not installed: its script is not checked", of)
			continue
		}
		check := exec.CommandContext(t.Context(), name, "-n")
		check.Stdin = strings.NewReader(s.ok(t, "completion", of))
		text, err := check.CombinedOutput()
		require.NoError(t, err, "%s -n: %s", of, text)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	script := s.ok(t, "completion", "bash") + "\ntry() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _paddock; echo \"${COMPREPLY[*]}\"; }\ntry paddock wh\ntry paddock --json tree --de\ntry paddock completion z\n" +
		"try paddock lock /l -- compge\ntry paddock lock /l -- cat compge\n"
	text, err := exec.CommandContext(t.Context(), bash, "-c", script).CombinedOutput()
	require.NoError(t, err, "%s", text)
	assert.Equal(t, "who\n--depth\nzsh\ncompgen\n\n", string(text), "the last is left to files")
}
