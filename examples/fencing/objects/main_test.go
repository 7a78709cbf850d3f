package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, playground.Run(t.Context(), "objects", "", log.New(&out, "", 0), run))
	assert.Equal(t, `Ann has the lock and writes
Bob has it now, and reads "Ann: in work"
Ann's late write is refused: true
the report says "Bob: done"
without the fence it says "Ann: done"
`, out.String())
}

func open(t *testing.T) (*Store, Object) {
	t.Helper()
	store := NewStore()
	srv := httptest.NewServer(store)
	t.Cleanup(srv.Close)
	return store, Object{URL: srv.URL + "/o", HTTP: srv.Client()}
}

const holders = 200

// crowd has holders of all times write at once, in any order, each its token.
func crowd(t *testing.T, write func(ctx context.Context, data []byte, token int64) error) (refused int64) {
	t.Helper()
	var wg sync.WaitGroup
	var count atomic.Int64
	next := make(chan int64, holders)
	for _, n := range rand.Perm(holders) {
		next <- int64(n + 1)
	}
	close(next)
	for range 8 {
		wg.Go(func() {
			for token := range next {
				if err := write(t.Context(), fmt.Appendf(nil, "%03d", token), token); err != nil {
					assert.ErrorIs(t, err, locks.ErrFenced)
					count.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return count.Load()
}

// What the store accepts rises, whoever is late.
func TestStaleRefused(t *testing.T) {
	store, o := open(t)
	refused := crowd(t, o.Write)
	all := store.Written()
	assert.True(t, slices.IsSorted(all), "%v", all)
	assert.Positive(t, refused)
	assert.Equal(t, int64(holders), refused+int64(len(all)))
	assert.Equal(t, "200", all[len(all)-1])
}

func TestStaleAcceptedWithoutFence(t *testing.T) {
	store, o := open(t)
	refused := crowd(t, func(ctx context.Context, data []byte, _ int64) error { return o.WriteUnfenced(ctx, data) })
	assert.Zero(t, refused)
	assert.False(t, slices.IsSorted(store.Written()))
}

// Reading shuts the door behind who held the lock before.
func TestReadRaises(t *testing.T) {
	_, o := open(t)
	data, err := o.Read(t.Context(), 7)
	require.NoError(t, err)
	assert.Empty(t, data)
	require.ErrorIs(t, o.Write(t.Context(), []byte("late"), 6), locks.ErrFenced)
	_, err = o.Read(t.Context(), 6)
	require.ErrorIs(t, err, locks.ErrFenced)
	require.NoError(t, o.Write(t.Context(), []byte("in time"), 7))
	for _, over := range []int64{0, -1} {
		require.ErrorIs(t, o.Write(t.Context(), nil, over), locks.ErrFenced, "the token of a hold that is over")
	}
	data, err = o.Read(t.Context(), 8)
	require.NoError(t, err)
	assert.Equal(t, "in time", string(data))
}
