// Package chance is where a client draws at random: the order of servers,
// pauses, and the names of nodes. A simulation gives each client draws that
// repeat.
package chance

import (
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"time"
)

// Source is what one session draws from. Nil, the usual one, draws what nobody
// can foresee. It may be used by many goroutines.
type Source struct {
	mu sync.Mutex // guards r
	r  *rand.Rand
}

// New makes the source of each session. Tests put another one here.
var New = func() *Source { return nil }

// Seeded draws the same for the same seed, if it is asked in the same order.
func Seeded(seed uint64) *Source { return &Source{r: rand.New(rand.NewPCG(seed, 0))} }

// Fill fills b.
func (s *Source) Fill(b []byte) {
	if s == nil {
		_, _ = crand.Read(b) // never fails
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b {
		b[i] = byte(s.r.Uint32())
	}
}

// Below draws from 0 up to d, d left out. It panics if d is not positive.
func (s *Source) Below(d time.Duration) time.Duration {
	if s == nil {
		return rand.N(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.r.Int64N(int64(d)))
}

// Shuffle puts n things into another order.
func (s *Source) Shuffle(n int, swap func(i, j int)) {
	if s == nil {
		rand.Shuffle(n, swap)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r.Shuffle(n, swap)
}
