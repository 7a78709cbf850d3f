package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/listeners"
	zktest "github.com/paddock-zk/paddock/testing"
)

// A session shows what several packages have, each kind to whoever asks for it.
func TestShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, zktest.Start(t, zktest.InMemory()))
		removeOne := Show(s, "one")
		Show(s, "two")
		Show(s, 3)
		assert.ElementsMatch(t, []string{"one", "two"}, Shown[string](s))
		assert.Equal(t, []int{3}, Shown[int](s))
		removeOne()
		assert.Equal(t, []string{"two"}, Shown[string](s))
	})
}

func TestSession_Stats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		created(t.Context(), t, s, "/a")
		_, err := s.Track(t.Context(), s.ID(), "/a", nobody{})
		require.NoError(t, err)
		st := StatsOf(s)
		assert.Equal(t, []any{listeners.Connected, s.ID(), 10 * time.Second, 1, c.Addr()}, []any{st.State, st.Session, st.Timeout, st.Holds, st.Server})
		assert.Positive(t, st.LeaseLeft)
		srv.Refuse()
		srv.DisconnectAll()
		time.Sleep(time.Minute)
		st = StatsOf(s)
		assert.Equal(t, []any{listeners.Lost, int64(0), 0, ""}, []any{st.State, st.Session, st.Holds, st.Server})
		assert.Zero(t, st.LeaseLeft)
		assert.Error(t, st.LastError)
	})
}
