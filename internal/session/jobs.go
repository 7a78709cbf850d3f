package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Go runs work in the background. Its context ends when the session is closed,
// which waits for it. Go reports false if that has happened already.
func (s *Session) Go(work func(ctx context.Context)) bool {
	return s.begin(&s.jobs, func() { work(s.life) })
}

// GoBeside is Go for the user's code, which may be slow to return. Close waits for it once it
// has ended the session on the servers.
func (s *Session) GoBeside(work func()) bool { return s.begin(&s.beside, work) }

// begin runs work among what Close waits for. Once Close has begun it does nothing, and reports false.
func (s *Session) begin(among *sync.WaitGroup, work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	among.Go(work)
	return true
}

// What fails is tried again after pauses that double from the first to the longest.
const (
	FirstPause = 50 * time.Millisecond
	MostPause  = 5 * time.Second
)

// RetryUntilDone repeats work until it succeeds, ctx ends, or the failure is one that
// repeating cannot cure, which is returned. The pauses double up to 5 seconds.
func RetryUntilDone(ctx context.Context, s *Session, work func(ctx context.Context) error) error {
	for pause := FirstPause; ; pause = min(2*pause, MostPause) {
		err := work(ctx)
		if err == nil || ctx.Err() != nil || !Passing(err) {
			return err
		}
		if err := Pause(ctx, s, pause); err != nil {
			return err
		}
	}
}

// Pause waits for about so long, or until ctx ends.
func Pause(ctx context.Context, s *Session, d time.Duration) error {
	t := time.NewTimer(d/2 + s.random.UpTo(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return s.contextEnd(ctx)
	}
}

// Passing is whether a failure may pass: that of a connection or of a server
// that is overwhelmed.
func Passing(err error) bool {
	var code *CodeError
	switch {
	case errors.Is(err, ErrClosed):
		return false
	case errors.Is(err, ErrNotConnected), errors.Is(err, ErrOutcomeUnknown), errors.Is(err, zk.ErrSessionMoved):
		return true
	case errors.As(err, &code):
		return passingCodes[code.Code]
	}
	return false
}
