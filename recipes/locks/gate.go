package locks

import (
	"fmt"
	"sync"
)

// Gate refuses stale holders on behalf of a resource outside the ensemble. Put
// one into the resource and pass every write through it. The zero value admits
// any token above 0. It may be used by many goroutines, and must not be copied.
//
// A Gate remembers the highest token in memory only. A resource that outlives its process
// has to keep the highest token with its data, and to compare and raise it in the same
// step as the write.
type Gate struct {
	mu      sync.Mutex
	highest int64
}

// Admit raises the gate to a holder's token and returns nil. It returns ErrFenced
// if it has seen a higher token, or if token is not above 0. The token of a hold
// that is over is 0.
func (g *Gate) Admit(token int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case token <= 0:
		return fmt.Errorf("%w: token %d stands for no holder", ErrFenced, token)
	case token < g.highest:
		return fmt.Errorf("%w: token %d, but %d was here", ErrFenced, token, g.highest)
	}
	g.highest = token
	return nil
}
