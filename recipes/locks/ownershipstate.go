package locks

// ownershipState is how far an ownership has come. It is a plain value that decides what
// an event means, and the ownership acts by that.
//
// Held and Uncertain may alternate. Lost and Released are final: once the state is one of
// them, no event changes it.
type ownershipState struct {
	is     HoldState
	err    error // of Lost and Released
	pinned bool  // the node goes with the ownership, in whatever state: no other owner may have it
	writes int32 // transactions on their way that rest on the node
}

// over is whether the ownership is lost or released.
func (s *ownershipState) over() bool { return s.is == Lost || s.is == Released }

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

// release ends the ownership after its last hold. It says whether there is something to
// give back, which a lost ownership has not.
func (s *ownershipState) release() (released bool) {
	if s.is == Lost {
		return false
	}
	s.is, s.err = Released, ErrReleased
	return true
}

// mayEnter is whether one more hold may share the ownership: the error is why not.
func (s *ownershipState) mayEnter() error {
	if s.over() {
		return s.err
	}
	return nil
}

// pin lets the node go with the ownership. It fails once that is over.
func (s *ownershipState) pin() error {
	if s.over() {
		return s.err
	}
	s.pinned = true
	return nil
}

// write says that a transaction begins which rests on the node. It fails once the
// ownership is over.
func (s *ownershipState) write() error {
	if s.over() {
		return s.err
	}
	s.writes++
	return nil
}

// wrote says that such a transaction is over. With doubt the servers may still apply it,
// as long as the node is there.
func (s *ownershipState) wrote(doubt bool) {
	s.writes--
	s.pinned = s.pinned || doubt
}

// isPinned is whether the node goes with the ownership.
func (s *ownershipState) isPinned() bool { return s.pinned || s.writes > 0 }
