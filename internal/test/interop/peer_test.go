//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds each wait of a test.
const patience = 40 * time.Second

// peer is a process that takes locks on command.
type peer struct {
	language string
	cmd      *exec.Cmd
	in       io.WriteCloser
	ended    chan struct{}
	log      *tail

	mu      sync.Mutex // guards the fields below
	next    int
	waiting map[string]chan string
	asked   map[string]chan struct{} // by lock path: somebody wants it back
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards kept
	kept bytes.Buffer
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.Len() > 1<<16 {
		l.kept.Next(l.kept.Len() - 1<<14)
	}
	return l.kept.Write(p)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}

// roleVar makes the test binary a Go peer.
const roleVar = "PADDOCK_INTEROP_PEER"

// startPeer starts a process of a language: "go", "java" or "python". It ends
// with its input, that is with this process at the latest.
func (r *rig) startPeer(language string) (*peer, error) {
	var cmd *exec.Cmd
	ctx := context.Background() // it ends with stop
	switch language {
	case "go":
		cmd = exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"="+r.witness.addr())
	case "java":
		cmd = r.java.command(ctx, "Peer", r.witness.addr())
	case "python":
		cmd = exec.CommandContext(ctx, r.python, "python/peer.py", r.witness.addr())
	default:
		return nil, fmt.Errorf("no language %q", language)
	}
	p := &peer{
		language: language, cmd: cmd, ended: make(chan struct{}), log: new(tail),
		waiting: map[string]chan string{"ready": make(chan string, 1)}, asked: make(map[string]chan struct{}),
	}
	cmd.Stderr = p.log
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := p.waiting["ready"]
	go p.hear(out)
	select {
	case <-ready:
		return p, nil
	case <-p.ended:
	case <-time.After(patience):
	}
	p.stop()
	return nil, fmt.Errorf("the %s peer did not get ready: %s", language, p.log)
}

func (p *peer) hear(out io.Reader) {
	defer close(p.ended)
	for s := bufio.NewScanner(out); s.Scan(); {
		first, rest, _ := strings.Cut(s.Text(), " ")
		p.mu.Lock()
		if first == "asked" {
			p.askedLocked(rest) <- struct{}{}
		} else if ch := p.waiting[first]; ch != nil {
			delete(p.waiting, first)
			ch <- rest
		}
		p.mu.Unlock()
	}
	_ = p.cmd.Wait()
}

func (p *peer) askedLocked(path string) chan struct{} {
	if p.asked[path] == nil {
		p.asked[path] = make(chan struct{}, 100)
	}
	return p.asked[path]
}

// stop ends the process and waits until it is gone.
func (p *peer) stop() {
	_ = p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// kill ends it as a crash does.
func (p *peer) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// reply is the answer to a command that may take its time.
type reply struct {
	peer *peer
	what string
	ch   chan string
}

// begin sends a command.
func (p *peer) begin(args ...any) *reply {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprint(a)
	}
	p.mu.Lock()
	p.next++
	token := strconv.Itoa(p.next)
	r := &reply{peer: p, what: p.language + ": " + strings.Join(words, " "), ch: make(chan string, 1)}
	p.waiting[token] = r.ch
	p.mu.Unlock()
	if _, err := fmt.Fprintln(p.in, token+" "+strings.Join(words, " ")); err != nil {
		r.ch <- "error " + err.Error()
	}
	return r
}

// wait returns the answer.
func (r *reply) wait(limit time.Duration) (string, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case answer := <-r.ch:
		verdict, text, _ := strings.Cut(answer, " ")
		if verdict != "ok" {
			return "", fmt.Errorf("%s: %s", r.what, text)
		}
		return text, nil
	case <-r.peer.ended:
		return "", fmt.Errorf("%s: the process has ended: %s", r.what, r.peer.log)
	case <-timer.C:
		return "", fmt.Errorf("%s: %w", r.what, errNoAnswer)
	}
}

var errNoAnswer = errors.New("no answer")

// ok waits for a good answer.
func (r *reply) ok(t testing.TB) string {
	t.Helper()
	text, err := r.wait(patience)
	require.NoError(t, err)
	return text
}

// pending fails the test if there is an answer already.
func (r *reply) pending(t testing.TB, why string) {
	t.Helper()
	select {
	case answer := <-r.ch:
		require.Fail(t, why, "%s: %s", r.what, answer)
	default:
	}
}

// do is begin and ok.
func (p *peer) do(t testing.TB, args ...any) string {
	t.Helper()
	return p.begin(args...).ok(t)
}

// awaitAsked waits until an actor of the peer has asked for a lock.
func (p *peer) awaitAsked(t testing.TB, path string) {
	t.Helper()
	p.mu.Lock()
	ch := p.askedLocked(path)
	p.mu.Unlock()
	select {
	case <-ch:
	case <-time.After(patience):
		require.FailNow(t, "nobody asked the "+p.language+" peer for "+path)
	}
}
