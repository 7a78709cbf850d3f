package locks

// HoldState says how sure the client is that it holds a lock.
type HoldState int

// The states of a hold, in the order in which they can follow. Only Held and Uncertain
// may alternate.
const (
	// Held says that nobody else has the lock.
	Held HoldState = iota + 1
	// Uncertain says that the connection is suspended, or that the client is connected
	// again and has not seen the node yet. Nobody else has the lock, since the session
	// lease has not run out.
	Uncertain
	// Lost says that another owner may have the lock.
	Lost
	// Released says that it was given back.
	Released
)

// String returns the state in one word.
func (s HoldState) String() string {
	switch s {
	case Held:
		return "HELD"
	case Uncertain:
		return "UNCERTAIN"
	case Lost:
		return "LOST"
	case Released:
		return "RELEASED"
	}
	return "NONE"
}

// ownershipState is how far an ownership has come. It is a plain value that decides what
// an event means, and the ownership acts by that.
//
// Held and Uncertain may alternate. Lost and Released are final: once the state is one of
// them, no event changes it.
type ownershipState struct {
	is     HoldState
	err    error // of Lost and Released, nil before
	pinned bool  // the node goes with the ownership, in whatever state: no other owner may have it
	writes int32 // transactions on their way that rest on the node
}

// become switches between Held and Uncertain.
func (s *ownershipState) become(from, to HoldState) (changed bool) {
	if changed = s.is == from; changed {
		s.is = to
	}
	return changed
}

// lose takes in that the node at path cannot be relied on any more. lost is whether the
// ownership is lost, and first whether it is so from now on.
func (s *ownershipState) lose(path string, reason error) (lost, first bool) {
	switch s.is {
	case Released:
		return false, false
	case Lost:
		return true, false
	}
	s.is, s.err = Lost, lostError(path, reason)
	return true, true
}

// release ends the ownership after its last hold, unless it is lost.
func (s *ownershipState) release() {
	if s.is != Lost {
		s.is, s.err = Released, ErrReleased
	}
}

// pin lets the node go with the ownership. It fails once that is over.
func (s *ownershipState) pin() error {
	s.pinned = s.pinned || s.err == nil
	return s.err
}

// write says that a transaction begins which rests on the node. It fails once the
// ownership is over.
func (s *ownershipState) write() error {
	if s.err == nil {
		s.writes++
	}
	return s.err
}

// wrote says that such a transaction is over. With doubt the servers may still apply it,
// as long as the node is there.
func (s *ownershipState) wrote(doubt bool) {
	s.writes--
	s.pinned = s.pinned || doubt
}

// isPinned is whether the node goes with the ownership.
func (s *ownershipState) isPinned() bool { return s.pinned || s.writes > 0 }
