package batch

import "hash/maphash"

// pathSet remembers paths: the last few thousands that were added or asked for. It keeps
// only a hash of each. So it may take a path for another one, which must do no harm.
type pathSet struct {
	young, old map[uint64]struct{}
}

// mostPaths is how many paths each half of a set keeps.
const mostPaths = 16 << 10

var pathSeed = maphash.MakeSeed()

func hashOf(path string) uint64 { return maphash.String(pathSeed, path) }

func (s *pathSet) has(path string) bool {
	h := hashOf(path)
	if _, ok := s.young[h]; ok {
		return true
	}
	if _, ok := s.old[h]; ok {
		s.addHash(h)
		return true
	}
	return false
}

func (s *pathSet) add(path string) { s.addHash(hashOf(path)) }

func (s *pathSet) addHash(h uint64) {
	switch {
	case s.young == nil:
		s.young = make(map[uint64]struct{})
	case len(s.young) >= mostPaths:
		s.old, s.young = s.young, make(map[uint64]struct{})
	}
	s.young[h] = struct{}{}
}

func (s *pathSet) remove(path string) {
	h := hashOf(path)
	delete(s.young, h)
	delete(s.old, h)
}
