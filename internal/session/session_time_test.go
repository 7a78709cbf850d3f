package session

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Close is one for all who call it.
func TestSession_Close(t *testing.T) {
	for name, tc := range map[string]struct {
		cutOff bool
		want   error
	}{"told": {false, nil}, "not told": {true, transport.ErrNotTold}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				s, _ := opened(t, srv)
				id := s.ID()
				created(t.Context(), t, s, "/a")
				if tc.cutOff {
					srv.Refuse()
					srv.DisconnectAll()
				}
				errs := make(chan error, 3)
				for range cap(errs) {
					go func() { errs <- s.Close() }()
				}
				for range cap(errs) {
					require.ErrorIs(t, <-errs, tc.want)
				}
				require.ErrorIs(t, s.Close(), tc.want)
				assert.Equal(t, tc.want != nil, len(srv.Ephemerals(id)) > 0)
				assert.Zero(t, s.ID())
				assert.Equal(t, listeners.Lost, s.State())
				<-s.Life().Done()
			})
		})
	}
}

// A listener that panics is reported to the others, and the session goes on.
func TestSession_ReportsPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, zktest.Start(t, zktest.InMemory()))
		var told []error
		s.Errors().Listen(func(error) { panic("in an error listener") })
		s.Errors().Listen(func(err error) { told = append(told, err) })
		s.States().Listen(func(listeners.State) { panic("mine") })
		synctest.Wait()
		errOther := errors.New("another")
		s.Report("other", errOther)
		synctest.Wait()
		require.Len(t, told, 2)
		var panicked *PanicError
		require.ErrorAs(t, told[0], &panicked)
		assert.Equal(t, "mine", panicked.Value)
		assert.EqualError(t, panicked, "listener panicked: mine")
		assert.Equal(t, errOther, told[1])
	})
}
