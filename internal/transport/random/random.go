// Package random is where a client draws at random: the order of servers,
// pauses, and the names of nodes. A simulation gives each client draws that
// repeat.
package random

import (
	crand "crypto/rand"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Source is what one session draws from. Nil, the usual one, draws what nobody
// can foresee. It may be used by many goroutines.
type Source struct {
	seed uint64

	mu    sync.Mutex // guards the fields below
	r     *rand.Rand
	named map[string]*Source
}

// Seeded draws the same for the same seed, if the calls come in the same order.
func Seeded(seed uint64) *Source {
	return &Source{seed: seed, r: rand.New(rand.NewPCG(seed, 0)), named: make(map[string]*Source)}
}

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

// For returns the source of a name. What a seeded source draws for one name does
// not depend on what it draws for others.
func (s *Source) For(name []byte) *Source {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.named[string(name)]
	if one == nil {
		one = Seeded(s.seed ^ sum(name))
		s.named[string(name)] = one
	}
	return one
}

func sum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// Stagger lets goroutines that were woken at one instant go on one after the other. Their
// order follows from what they are about to do, and not from the scheduler. It is for
// seeded sources only; nil does nothing.
func (s *Source) Stagger(what []byte) {
	if s == nil {
		return
	}
	<-time.After(1 + time.Duration(sum(what)%uint64(time.Microsecond)))
}

// UpTo draws from 0 up to d, d left out. It panics if d is not positive.
func (s *Source) UpTo(d time.Duration) time.Duration {
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
