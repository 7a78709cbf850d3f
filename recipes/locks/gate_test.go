package locks_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/recipes/locks"
)

func TestGate(t *testing.T) {
	var g locks.Gate
	require.ErrorIs(t, g.Admit(0), locks.ErrFenced)
	require.ErrorIs(t, g.Admit(-1), locks.ErrFenced)
	require.NoError(t, g.Admit(7))
	require.NoError(t, g.Admit(7), "the same holder again")
	require.NoError(t, g.Admit(9))
	require.ErrorIs(t, g.Admit(8), locks.ErrFenced)
	require.ErrorIs(t, g.Admit(0), locks.ErrFenced)
	require.NoError(t, g.Admit(9), "refusals change nothing")
}

func TestGateLetsNobodyBack(t *testing.T) {
	var g locks.Gate
	var wg sync.WaitGroup
	var refused atomic.Int32
	for w := range 4 {
		wg.Go(func() {
			var highest int64
			for i := range int64(1000) {
				token := i*4 + int64(w) + 1
				if g.Admit(token) != nil {
					refused.Add(1)
					continue
				}
				assert.Greater(t, token, highest)
				highest = token
			}
		})
	}
	wg.Wait()
	require.ErrorIs(t, g.Admit(3999-1), locks.ErrFenced)
}
