package cache

import (
	"iter"
	"slices"
	"sort"
	"strings"
)

// tree is an immutable map from paths to entries, in the order of compare. Changes copy the
// way from the root and share the rest, so that old trees stay as they are.
//
// It is a B+ tree: pages of entries in order, and pages of such pages above them.
type tree[T any] struct{ root *page[T] }

// page has entries, or pages of the same height. It has one at least.
type page[T any] struct {
	entries []*Entry[T]
	pages   []*page[T]
	first   *Entry[T] // of all below
	size    int32     // entries below
	height  int32     // 0 for a page of entries
}

const mostInPage = 32

// compare orders paths so that a node stands before all nodes below it, and those before any
// other node: a slash comes before all other characters.
func compare(a, b string) int {
	i := 0
	for i+8 <= len(a) && i+8 <= len(b) && word(a[i:]) == word(b[i:]) {
		i += 8
	}
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

// word is the first eight bytes, which one instruction loads.
func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// isUnder is whether path is top or below it.
func isUnder(path, top string) bool {
	return top == "/" || strings.HasPrefix(path, top) && (len(path) == len(top) || path[len(top)] == '/')
}

// leafOf and innerOf are pages that keep what they are given.
func leafOf[T any](entries []*Entry[T]) *page[T] {
	return &page[T]{entries: entries, first: entries[0], size: int32(len(entries))} //nolint:gosec // at most mostInPage
}

func innerOf[T any](pages []*page[T]) *page[T] {
	p := &page[T]{pages: pages, first: pages[0].first, height: pages[0].height + 1}
	for _, q := range pages {
		p.size += q.size
	}
	return p
}

// paged is a list in as few pieces as fit into pages, all about as long.
func paged[E any, P any](list []E, of func([]E) P) (pages []P) {
	for n := (len(list) + mostInPage - 1) / mostInPage; n > 0; n-- {
		some := len(list) / n
		pages = append(pages, of(slices.Clone(list[:some])))
		list = list[some:]
	}
	return pages
}

func (t tree[T]) len() int {
	if t.root == nil {
		return 0
	}
	return int(t.root.size)
}

// within is the page that has path if any has.
func (p *page[T]) within(path string) int {
	return max(0, sort.Search(len(p.pages), func(i int) bool { return compare(p.pages[i].first.Path, path) > 0 })-1)
}

// from is the first entry that does not stand before path.
func (p *page[T]) from(path string) int {
	return sort.Search(len(p.entries), func(i int) bool { return compare(p.entries[i].Path, path) >= 0 })
}

func (t tree[T]) get(path string) *Entry[T] {
	p := t.root
	for p != nil && p.pages != nil {
		p = p.pages[p.within(path)]
	}
	if p != nil {
		if i := p.from(path); i < len(p.entries) && p.entries[i].Path == path {
			return p.entries[i]
		}
	}
	return nil
}

// put is the tree with entries in the place of those with their paths, which differ. It sorts
// them.
func (t tree[T]) put(entries ...*Entry[T]) tree[T] {
	slices.SortFunc(entries, func(a, b *Entry[T]) int { return compare(a.Path, b.Path) })
	var pages []*page[T]
	if t.root == nil {
		pages = paged(entries, leafOf[T])
	} else {
		pages = t.root.put(entries)
	}
	for len(pages) > 1 {
		pages = paged(pages, innerOf[T])
	}
	if len(pages) == 0 {
		return t
	}
	return tree[T]{pages[0]}
}

// put is what a page becomes with entries in order.
func (p *page[T]) put(entries []*Entry[T]) []*page[T] {
	switch {
	case len(entries) == 0:
		return []*page[T]{p}
	case p.pages == nil:
		return paged(merge(p.entries, entries), leafOf[T])
	}
	pages := make([]*page[T], 0, len(p.pages)+1)
	for i, q := range p.pages {
		n := len(entries)
		if i+1 < len(p.pages) {
			end := p.pages[i+1].first.Path
			n = sort.Search(n, func(i int) bool { return compare(entries[i].Path, end) >= 0 })
		}
		pages = append(pages, q.put(entries[:n])...)
		entries = entries[n:]
	}
	return paged(pages, innerOf[T])
}

// merge is one list of two, with the second one's entries for paths that both have.
func merge[T any](a, b []*Entry[T]) []*Entry[T] {
	all := make([]*Entry[T], 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		order := compare(a[0].Path, b[0].Path)
		if order < 0 {
			all = append(all, a[0])
		} else {
			all, b = append(all, b[0]), b[1:]
		}
		if order <= 0 {
			a = a[1:]
		}
	}
	return append(append(all, a...), b...)
}

// without is the tree without the entry of a path.
func (t tree[T]) without(path string) tree[T] {
	if t.get(path) == nil {
		return t
	}
	root := t.root.without(path)
	for root != nil && len(root.pages) == 1 {
		root = root.pages[0]
	}
	return tree[T]{root}
}

// without is a page without an entry that it has, nil if that was the last one.
func (p *page[T]) without(path string) *page[T] {
	switch {
	case p.size == 1:
		return nil
	case p.pages == nil:
		i := p.from(path)
		return leafOf(slices.Concat(p.entries[:i], p.entries[i+1:]))
	}
	i := p.within(path)
	if q := p.pages[i].without(path); q != nil {
		return innerOf(slices.Concat(p.pages[:i], []*page[T]{q}, p.pages[i+1:]))
	}
	return innerOf(slices.Concat(p.pages[:i], p.pages[i+1:]))
}

// first is the first entry of which from is true. It is false of those before, and true of all
// that follow.
func (t tree[T]) first(from func(path string) bool) (found *Entry[T]) {
	p := t.root
	for p != nil && p.pages != nil {
		i := sort.Search(len(p.pages), func(i int) bool { return from(p.pages[i].first.Path) })
		if i < len(p.pages) {
			found = p.pages[i].first
		}
		p = p.pages[max(0, i-1)]
	}
	if p != nil {
		if i := sort.Search(len(p.entries), func(i int) bool { return from(p.entries[i].Path) }); i < len(p.entries) {
			found = p.entries[i]
		}
	}
	return found
}

// under are the entries at top and below it, in order.
func (t tree[T]) under(top string) iter.Seq[*Entry[T]] {
	return func(yield func(*Entry[T]) bool) {
		if t.root != nil {
			t.root.under(top, yield)
		}
	}
}

// under is whether there may be more behind the page.
func (p *page[T]) under(top string, yield func(*Entry[T]) bool) bool {
	if p.pages != nil {
		for _, q := range p.pages[p.within(top):] {
			if !q.under(top, yield) {
				return false
			}
		}
		return true
	}
	for _, e := range p.entries[p.from(top):] {
		if !isUnder(e.Path, top) || !yield(e) {
			return false
		}
	}
	return true
}

// place is one in a tree, on the way from the first entry to the last. The zero value is the
// end.
type place[T any] struct{ above []step[T] }

type step[T any] struct {
	page *page[T]
	next int
}

// begin is the place of the first entry.
func (t tree[T]) begin() (p place[T]) {
	if t.root != nil {
		p.above = []step[T]{{page: &page[T]{pages: []*page[T]{t.root}}}}
	}
	return p
}

// isEnd is true once next has found nothing.
func (p *place[T]) isEnd() bool { return len(p.above) == 0 }

// entry passes the next entry and returns it, nil at the end.
func (p *place[T]) entry() *Entry[T] {
	for {
		switch e, q := p.next(); {
		case q != nil:
			p.enter(q)
		case e == nil:
			return nil
		default:
			p.pass()
			return e
		}
	}
}

// next is the entry there, or a page from which that comes, or nothing at the end. Either is
// a path that stands there.
func (p *place[T]) next() (e *Entry[T], q *page[T]) {
	for n := len(p.above); n > 0; n = len(p.above) {
		switch s := p.above[n-1]; {
		case s.next < len(s.page.entries):
			return s.page.entries[s.next], nil
		case s.next < len(s.page.pages):
			return s.page.pages[s.next].first, s.page.pages[s.next]
		}
		p.above = p.above[:n-1]
	}
	return nil, nil
}

// pass goes on behind what is there.
func (p *place[T]) pass() { p.above[len(p.above)-1].next++ }

// enter goes on with the first in a page that is there.
func (p *place[T]) enter(q *page[T]) {
	p.pass()
	p.above = append(p.above, step[T]{page: q})
}

// diff calls fn for each path whose entries are not the same in two trees, in order. It takes
// no longer than there are differences, since it passes over pages that both trees have.
func diff[T any](a, b tree[T], fn func(before, after *Entry[T])) {
	left, right := a.begin(), b.begin()
	for {
		before, in := left.next()
		after, out := right.next()
		order := 0
		switch {
		case before == nil && after == nil:
			return
		case before == nil:
			order = 1
		case after == nil:
			order = -1
		default:
			order = compare(before.Path, after.Path)
		}
		switch {
		case in != nil && in == out:
			left.pass()
			right.pass()
		case in != nil && order <= 0 && (out == nil || order < 0 || in.height >= out.height):
			left.enter(in)
		case out != nil && order >= 0:
			right.enter(out)
		case order < 0:
			fn(before, nil)
			left.pass()
		case order > 0:
			fn(nil, after)
			right.pass()
		default:
			if before != after {
				fn(before, after)
			}
			left.pass()
			right.pass()
		}
	}
}
