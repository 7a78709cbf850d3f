package cache

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"
)

// tree is an immutable map from paths to entries, in the order of compare. Changes copy the
// way from the root and share the rest, so that old trees stay as they are.
//
// It is a treap: a search tree by path, and a heap by a hash of the path. So its shape follows
// from what is in it, and two trees that have much in common share that.
type tree[T any] struct{ root *branch[T] }

type branch[T any] struct {
	entry       *Entry[T]
	left, right *branch[T]
	weight      uint32 // those of two may be the same
	size        int32
}

var seed = maphash.MakeSeed()

// compare orders paths so that a node stands before all nodes below it, and those before any
// other node: a slash comes before all other characters.
func compare(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	switch {
	case i == len(a) || i == len(b):
		return len(a) - len(b)
	case a[i] == '/':
		return -1
	case b[i] == '/':
		return 1
	}
	return int(a[i]) - int(b[i])
}

// isUnder is whether path is top or below it.
func isUnder(path, top string) bool {
	return top == "/" || strings.HasPrefix(path, top) && (len(path) == len(top) || path[len(top)] == '/')
}

func (b *branch[T]) count() int {
	if b == nil {
		return 0
	}
	return int(b.size)
}

// branchOf is an entry between two branches.
func branchOf[T any](e *Entry[T], weight uint32, left, right *branch[T]) *branch[T] {
	return &branch[T]{entry: e, left: left, right: right, weight: weight, size: int32(1 + left.count() + right.count())} //nolint:gosec // MaxNodes is far below
}

// with is b with other branches.
func (b *branch[T]) with(left, right *branch[T]) *branch[T] {
	if b.left == left && b.right == right {
		return b
	}
	return branchOf(b.entry, b.weight, left, right)
}

func (t tree[T]) len() int { return t.root.count() }

func (t tree[T]) get(path string) *Entry[T] {
	for b := t.root; b != nil; {
		switch order := compare(path, b.entry.Path); {
		case order == 0:
			return b.entry
		case order < 0:
			b = b.left
		default:
			b = b.right
		}
	}
	return nil
}

// put is the tree with an entry in the place of the one with its path.
func (t tree[T]) put(e *Entry[T]) tree[T] {
	return tree[T]{put(t.root, e, uint32(maphash.String(seed, e.Path)))} //nolint:gosec // half of it is enough
}

func put[T any](b *branch[T], e *Entry[T], weight uint32) *branch[T] {
	if b == nil {
		return branchOf[T](e, weight, nil, nil)
	}
	order := compare(e.Path, b.entry.Path)
	if order == 0 {
		if b.entry == e {
			return b
		}
		return branchOf(e, weight, b.left, b.right)
	}
	if weight > b.weight {
		left, _, right := split(b, e.Path)
		return branchOf(e, weight, left, right)
	}
	if order < 0 {
		return b.with(put(b.left, e, weight), b.right)
	}
	return b.with(b.left, put(b.right, e, weight))
}

// putAll is the tree with entries of paths that it does not have. It sorts them.
func (t tree[T]) putAll(entries []*Entry[T]) tree[T] {
	slices.SortFunc(entries, func(a, b *Entry[T]) int { return compare(a.Path, b.Path) })
	// The right edge of a tree of those so far, from the root. Who comes next belongs there.
	var edge []*branch[T]
	for _, e := range entries {
		b := branchOf[T](e, uint32(maphash.String(seed, e.Path)), nil, nil) //nolint:gosec // half of it is enough
		for len(edge) > 0 && edge[len(edge)-1].weight < b.weight {
			b.left, edge = edge[len(edge)-1], edge[:len(edge)-1]
		}
		if len(edge) > 0 {
			edge[len(edge)-1].right = b
		}
		edge = append(edge, b)
	}
	if len(edge) == 0 {
		return t
	}
	edge[0].measure()
	return tree[T]{union(t.root, edge[0])}
}

// measure sets the sizes of a branch and those below it.
func (b *branch[T]) measure() int32 {
	if b == nil {
		return 0
	}
	b.size = 1 + b.left.measure() + b.right.measure()
	return b.size
}

// union is one branch of two that have no path in common.
func union[T any](a, b *branch[T]) *branch[T] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.weight < b.weight:
		a, b = b, a
	}
	left, _, right := split(b, a.entry.Path)
	return a.with(union(a.left, left), union(a.right, right))
}

// split is what stands before a path, at it, and behind it.
func split[T any](b *branch[T], path string) (left *branch[T], at *Entry[T], right *branch[T]) {
	if b == nil {
		return nil, nil, nil
	}
	switch order := compare(path, b.entry.Path); {
	case order == 0:
		return b.left, b.entry, b.right
	case order < 0:
		left, at, right = split(b.left, path)
		return left, at, b.with(right, b.right)
	default:
		left, at, right = split(b.right, path)
		return b.with(b.left, left), at, right
	}
}

// without is the tree without the entry of a path.
func (t tree[T]) without(path string) tree[T] {
	if t.get(path) == nil {
		return t
	}
	return tree[T]{without(t.root, path)}
}

func without[T any](b *branch[T], path string) *branch[T] {
	switch order := compare(path, b.entry.Path); {
	case order == 0:
		return join(b.left, b.right)
	case order < 0:
		return b.with(without(b.left, path), b.right)
	default:
		return b.with(b.left, without(b.right, path))
	}
}

// join is one branch of two, the first of which stands before the other.
func join[T any](left, right *branch[T]) *branch[T] {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.weight > right.weight:
		return left.with(left.left, join(left.right, right))
	}
	return right.with(join(left, right.left), right.right)
}

// first is the first entry of which from is true. It is false of those before, and true of all
// that follow.
func (t tree[T]) first(from func(path string) bool) *Entry[T] {
	var found *Entry[T]
	for b := t.root; b != nil; {
		if from(b.entry.Path) {
			found, b = b.entry, b.left
		} else {
			b = b.right
		}
	}
	return found
}

// under are the entries at top and below it, in order.
func (t tree[T]) under(top string) iter.Seq[*Entry[T]] {
	return func(yield func(*Entry[T]) bool) { under(t.root, top, yield) }
}

func under[T any](b *branch[T], top string, yield func(*Entry[T]) bool) bool {
	if b == nil {
		return true
	}
	within, order := isUnder(b.entry.Path, top), compare(b.entry.Path, top)
	if order >= 0 && !under(b.left, top, yield) {
		return false
	}
	if within && !yield(b.entry) {
		return false
	}
	return order >= 0 && !within || under(b.right, top, yield)
}

// diff calls fn for each path whose entries are not the same in two trees, in order. It takes
// no longer than there are differences.
func diff[T any](a, b *branch[T], fn func(before, after *Entry[T])) {
	switch {
	case a == b:
	case b == nil || a != nil && a.weight > b.weight:
		left, at, right := split(b, a.entry.Path)
		diff(a.left, left, fn)
		fn(a.entry, at)
		diff(a.right, right, fn)
	case a == nil || b.weight > a.weight || a.entry.Path != b.entry.Path:
		left, at, right := split(a, b.entry.Path)
		diff(left, b.left, fn)
		fn(at, b.entry)
		diff(right, b.right, fn)
	default:
		diff(a.left, b.left, fn)
		if a.entry != b.entry {
			fn(a.entry, b.entry)
		}
		diff(a.right, b.right, fn)
	}
}
