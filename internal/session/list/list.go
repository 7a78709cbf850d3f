// Package list has doubly linked lists of things that have their places in them. So nothing
// is allocated to add one, and a thing can tell which list it is in.
package list

import "iter"

// List is a list of things. The zero value is empty.
type List[T any] struct {
	first, last *Place[T]
	n           int
}

// Place is the place of a thing in one list at a time. The zero value is in none.
type Place[T any] struct {
	of         *T
	in         *List[T]
	prev, next *Place[T]
}

// In is the list that a place is in, nil for none.
func (p *Place[T]) In() *List[T] { return p.in }

// Len is how many things are in the list.
func (l *List[T]) Len() int { return l.n }

// First is the first thing, nil for none.
func (l *List[T]) First() *T {
	if l.first == nil {
		return nil
	}
	return l.first.of
}

// All are the things from the first to the last. The one that was given last may be removed
// meanwhile, no other.
func (l *List[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for p := l.first; p != nil; {
			next := p.next
			if !yield(p.of) {
				return
			}
			p = next
		}
	}
}

// Push adds a thing at the end, by a place that is in no list.
func (l *List[T]) Push(thing *T, p *Place[T]) { l.insert(thing, p, l.last, nil) }

// PushFront adds a thing as the first, by a place that is in no list.
func (l *List[T]) PushFront(thing *T, p *Place[T]) { l.insert(thing, p, nil, l.first) }

func (l *List[T]) insert(thing *T, p, after, next *Place[T]) {
	if after == nil {
		l.first = p
	} else {
		after.next = p
	}
	if next == nil {
		l.last = p
	} else {
		next.prev = p
	}
	*p = Place[T]{of: thing, in: l, prev: after, next: next}
	l.n++
}

// Remove takes a place out of its list. It reports whether it was in one.
func (p *Place[T]) Remove() bool {
	l := p.in
	if l == nil {
		return false
	}
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	l.n--
	*p = Place[T]{}
	return true
}
