package cache

import (
	"errors"
	"iter"

	"github.com/paddock-zk/paddock/framework"
)

// Entry is what a cache knows of a node. It is not changed any more.
type Entry[T any] struct {
	Path  string
	Value T // what the Decoder has made of the node's data. Do not change what it points to
	// Created and Changed are the transactions that have made the node and set its data last,
	// and Version counts how often it was set.
	Created  int64
	Changed  int64
	Version  int32
	unlisted bool // Err is set, and there may be children that are not known
	// Owner is the session of an ephemeral node, else 0.
	Owner int64
	// Err is set if Value is not that of the node. An error of framework says that the node,
	// or the list of its children, cannot be read: then nodes below it may be missing too.
	// A *DecodeError says that the data cannot be decoded. Value is the last good one of the
	// same node then, if there was one.
	Err error

	size int // of the data
}

// DecodeError is what a Decoder has returned.
type DecodeError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *DecodeError) Error() string { return "decode " + e.Path + ": " + e.Err.Error() }

// Unwrap gives the Decoder's error.
func (e *DecodeError) Unwrap() error { return e.Err }

// same is whether two entries have the same data.
func (e *Entry[T]) same(other *Entry[T]) bool {
	return e.Created == other.Created && e.Changed == other.Changed && e.Version == other.Version
}

// reads is whether an entry is what is read of a node with that Stat.
func (e *Entry[T]) reads(stat *framework.Stat) bool {
	var undecodable *DecodeError
	return e != nil && e.Created == stat.Czxid && e.Changed == stat.Mzxid && e.Version == stat.Version &&
		(e.Err == nil || errors.As(e.Err, &undecodable))
}

// fails is whether it says that this has failed.
func (e *Entry[T]) fails(err error) bool {
	return e != nil && e.Err != nil && e.Err.Error() == err.Error()
}

// hole is the entry with an error, and with children that are not known. It is the one that
// is known if that says the same, so that readers are told of it once.
func (e *Entry[T]) hole(err error, known *Entry[T]) *Entry[T] {
	if known.fails(err) && known.unlisted && known.same(e) {
		return known
	}
	h := *e
	h.Err, h.unlisted = err, true
	return &h
}

// listFailed is whether Err is of the list of the children.
func (e *Entry[T]) listFailed() bool {
	var op *framework.OpError
	return errors.As(e.Err, &op) && op.Op == "children"
}

// Snapshot is the state of the subtree after one transaction. It does not change, whatever
// the cache does, and is safe for use by many goroutines.
type Snapshot[T any] struct {
	zxid int64
	top  string
	tree tree[T]
}

// Zxid is the transaction whose state it shows, 0 if the cache has not loaded yet.
func (s *Snapshot[T]) Zxid() int64 { return s.zxid }

// Len is the number of nodes.
func (s *Snapshot[T]) Len() int { return s.tree.len() }

// Get returns the entry of a node, which is there if ok is true.
func (s *Snapshot[T]) Get(path string) (entry Entry[T], ok bool) {
	if e := s.tree.get(path); e != nil {
		return *e, true
	}
	return entry, false
}

// All are the entries, each before those below it, otherwise in the order of the names.
func (s *Snapshot[T]) All() iter.Seq[Entry[T]] { return s.Under(s.top) }

// Under are the entries of path and of all nodes below it, in the order of All.
func (s *Snapshot[T]) Under(path string) iter.Seq[Entry[T]] {
	return func(yield func(Entry[T]) bool) {
		for e := range s.tree.under(path) {
			if !yield(*e) {
				return
			}
		}
	}
}

// Children are the entries right below path, in the order of the names.
func (s *Snapshot[T]) Children(path string) iter.Seq[Entry[T]] {
	return func(yield func(Entry[T]) bool) {
		after := path
		for {
			e := s.tree.first(func(p string) bool {
				return compare(p, after) > 0 && (after == path || !isUnder(p, after))
			})
			if e == nil || !isUnder(e.Path, path) || !yield(*e) {
				return
			}
			after = e.Path
		}
	}
}

// Change is what a step has changed at one path.
type Change[T any] struct {
	Path string
	Old  *Entry[T] // nil if there was no node
	New  *Entry[T] // nil if there is none any more
}

// Replaced is whether the node was deleted and made again.
func (c Change[T]) Replaced() bool {
	return c.Old != nil && c.New != nil && c.Old.Created != c.New.Created
}

// Step leads from one snapshot to the next. It has all changes of a transaction, or none.
type Step[T any] struct {
	// Zxid is that of the snapshot to which it leads.
	Zxid int64
	// Restart is set in the first step of a reader, and when it was too slow: begin anew with
	// this snapshot. There are no Changes then.
	Restart *Snapshot[T]
	Changes []Change[T] // in the order of Snapshot.All
}

// changes are the differences between two trees.
func changes[T any](before, after tree[T]) (list []Change[T]) {
	diff(before, after, func(old, now *Entry[T]) {
		if old != nil && now != nil && old.same(now) && old.Err == nil && now.Err == nil {
			return
		}
		if old != nil {
			list = append(list, Change[T]{old.Path, old, now})
		} else {
			list = append(list, Change[T]{now.Path, nil, now})
		}
	})
	return list
}
