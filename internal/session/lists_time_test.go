package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	zktest "github.com/paddock-zk/paddock/testing"
)

func TestNewLists_FitIntoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, zktest.Start(t, zktest.InMemory()), func(cfg *Config) { cfg.Transport.MaxRequest = 4096 })
		paths := func(n, length int) (all []string) {
			for i := range n {
				all = append(all, fmt.Sprintf("/%0*d", length-1, i))
			}
			return all
		}
		for name, tc := range map[string]struct {
			paths  []string
			apart  bool
			calls  int
			counts []int
		}{
			"one":                    {paths(1, 10), false, 1, nil},
			"two":                    {paths(2, 10), false, 1, []int{2}},
			"two, apart":             {paths(2, 10), true, 2, nil},
			"some":                   {paths(100, 10), false, 1, []int{100}},
			"more than one can hold": {paths(250, 10), false, 2, []int{169, 81}},
			"long paths":             {paths(5, 1500), false, 3, []int{2, 2, 1}},
			"longer than a request":  {paths(2, 5000), false, 2, []int{1, 1}},
		} {
			l := NewLists(s, tc.paths, tc.apart)
			assert.Len(t, l.Calls, tc.calls, name)
			assert.Equal(t, tc.counts, l.counts, name)
			for _, call := range l.Calls {
				assert.True(t, call.Size() <= 4096 || strings.HasPrefix(name, "longer"), "%s: %d bytes", name, call.Size())
			}
		}
	})
}

// A node that is missing or hidden does not harm the others.
func TestListed_OneIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv)
		created(t.Context(), t, s, "/dark", 0)
		paths := []string{"/", "/none", "/dark", "/zookeeper"}
		for _, apart := range []bool{false, true} {
			before := srv.Requests()["multiRead"]
			l := NewLists(s, paths, apart)
			require.NoError(t, s.SendAll(t.Context(), c, l.Calls))
			for i, want := range []error{nil, zk.ErrNoNode, zk.ErrNoAuth, nil} {
				names, err := Listed(t.Context(), s, c, l, i)
				require.ErrorIs(t, err, want, paths[i])
				assert.Equal(t, want == nil, len(names.Strings()) == 2, paths[i])
			}
			assert.Equal(t, !apart, srv.Requests()["multiRead"] > before)
		}
	})
}

// What is too large together is asked for with a request each.
func TestListed_Apart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		s, c := opened(t, srv, func(cfg *Config) { cfg.Transport.MaxReply = 300 })
		created(t.Context(), t, s, "/"+strings.Repeat("x", 100))
		l := NewLists(s, []string{"/", "/", "/"}, false)
		require.NoError(t, s.SendAll(t.Context(), c, l.Calls))
		for i := range 3 {
			_, err := Listed(t.Context(), s, c, l, i)
			require.ErrorIs(t, err, ErrApart)
		}
		l = NewLists(s, []string{"/", "/", "/"}, true)
		require.NoError(t, s.SendAll(t.Context(), c, l.Calls))
		for i := range 3 {
			names, err := Listed(t.Context(), s, c, l, i)
			require.NoError(t, err)
			assert.Len(t, names.Strings(), 2)
		}
	})
}
