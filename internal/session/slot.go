package session

import "sync"

// Slot is a place for something that a package keeps for each client. It is a variable
// of the package.
type Slot[T any] struct {
	// New makes the thing at the first call of Of. It must not call Of itself.
	New func(*Session) *T
}

// Of returns what is kept for a client.
func (slot *Slot[T]) Of(s *Session) *T {
	kept, ok := s.slots.Load(slot)
	if !ok {
		kept, _ = s.slots.LoadOrStore(slot, sync.OnceValue(func() *T { return slot.New(s) }))
	}
	return kept.(func() *T)() //nolint:forcetypeassert // nobody else has this key
}
