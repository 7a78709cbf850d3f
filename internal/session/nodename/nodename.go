// Package nodename makes and reads the names of nodes that a client must find again, or
// whose owner must be told from others. It is pure: its caller draws the random bytes.
//
// A protected node has a unique name: the mark, a UUID and a dash before the name asked
// for. If the reply to its creation is lost, the client finds the node by that prefix.
//
// Source: Curator's ProtectedUtils; the form is the same, so Java's helpers
// recognise it.
package nodename

import (
	"encoding/hex"
	"strconv"
)

// Mark is how each protected name begins.
const Mark = "_c_"

// prefixLen is how long a protection is.
const prefixLen = len(Mark) + 36 + 1

// Tag tells apart the owners of nodes that share a session. It is the last part of a UUID
// of version 8, whose content its maker may choose. UUIDs of other libraries are of
// version 4.
//
// Its first half says when the owner began, by the servers' transactions. The
// clocks of processes differ, and their transactions do not. The second half is random.
type Tag [6]byte

// NewTag returns the tag of an owner that begins when its client has seen a transaction,
// with some random bytes.
func NewTag(zxid int64, rnd [3]byte) Tag {
	const leader, some = 1 << 20, 1 << 8 // by how much another leader raises it, and how many transactions raise it by one
	epoch, count := uint64(zxid)>>32, uint64(zxid)&0xffffffff
	began := epoch*leader + count/some
	return Tag{byte(began >> 16), byte(began >> 8), byte(began), rnd[0], rnd[1], rnd[2]}
}

// beganLen is how many digits of a tag say when its owner began.
const beganLen = 6

// Younger is whether the owner with a tag, as text, began after another. Of two different
// tags one is always the younger. The numbers start again after four billion
// transactions, and after 16 changes of the leader. So the younger tag is the one that is
// less than half of that range ahead.
func Younger(tag, than string) bool {
	t, errT := strconv.ParseUint(tag[:min(len(tag), beganLen)], 16, 32)
	o, errO := strconv.ParseUint(than[:min(len(than), beganLen)], 16, 32)
	const round = 1 << (4 * beganLen)
	if ahead := (t - o) % round; errT == nil && errO == nil && ahead != 0 && ahead != round/2 {
		return ahead < round/2
	}
	return tag > than
}

// Way is how an owner takes its locks, as its nodes say.
type Way byte

const (
	// Plain is the way of an owner that has no other lock when it makes the node, as far as
	// its context says.
	Plain Way = iota
	// Nesting is the way of an owner that has other locks, at earlier paths, and keeps them
	// while it waits. Here and in Reverse only paths count that differ from the node's lock in one part.
	Nesting
	// Reverse is the way of an owner that has another lock at a later path, and keeps it.
	Reverse
	// Unknown is the way of nodes of other libraries, which say nothing, of an owner that has locks at other
	// paths alone, or that nobody wants, and of one that may have a lock of which its context does not say.
	Unknown
	// Joint is the way of a MultiLock that has put all its nodes into their queues in one
	// transaction.
	Joint
	// Ordered is the way of a MultiLock that puts them there one by one, in the order of
	// their paths.
	Ordered
	// Backward is the way of a MultiLock that puts them there one by one, from the last path
	// to the first. Versions without it take it for Ordered.
	Backward
)

// Yields is whether such an owner gives its place to others rather than be in their way.
func (w Way) Yields() bool { return w >= Joint }

// The way is the first three bits of a tagged UUID. Versions that knew only the first one
// had random bits in place of the others. So a joint MultiLock of theirs may look like an
// ordered one and an owner that nests like a plain one, or the other way round. That costs
// a yield too many, or time: theirs yield to anybody, and plain owners are yielded to as
// well, only later.
const wayAt = 5

// Owner is whose a node is, as its name says.
type Owner struct {
	Tag Tag
	Way Way
}

// Random returns the protection that those random bytes make: a prefix for the
// name of one node.
func Random(rnd [16]byte) string {
	rnd[6] = rnd[6]&0x0f | 0x40
	return protection(rnd)
}

// Owned is Random for a node of an owner.
func Owned(rnd [10]byte, owner Owner) string {
	var u [16]byte
	copy(u[:], rnd[:])
	u[6] = u[6]&0x0f | 0x80
	u[0] = u[0]&(1<<wayAt-1) | byte(owner.Way)<<wayAt
	copy(u[10:], owner.Tag[:])
	return protection(u)
}

func protection(u [16]byte) string {
	u[8] = u[8]&0x3f | 0x80
	name := append(make([]byte, 0, prefixLen), Mark...)
	from := 0
	for _, to := range [...]int{4, 6, 8, 10, len(u)} {
		name = append(hex.AppendEncode(name, u[from:to]), '-')
		from = to
	}
	return string(name)
}

// TagOf returns the tag in a name, as text, "" if there is none.
func TagOf(name string) string {
	if !isTagged(name) {
		return ""
	}
	return name[len(Mark)+24 : prefixLen-1]
}

// WayOf is how the owner of a node with that name takes its locks.
func WayOf[N string | []byte](name N) Way {
	if !isTagged(name) {
		return Unknown
	}
	digit, err := strconv.ParseUint(string(name[len(Mark):len(Mark)+1]), 16, 8)
	if err != nil {
		return Unknown
	}
	if way := Way(digit >> 1); way <= Backward {
		return way
	}
	return Ordered
}

// Ways is a set of ways.
type Ways uint8

// With is the set with one more.
func (s Ways) With(w Way) Ways { return s | 1<<w }

// Has is whether one is in it.
func (s Ways) Has(w Way) bool { return s&(1<<w) != 0 }

// Yields is whether the owner of a node with that name yields.
func Yields[N string | []byte](name N) bool {
	return isTagged(name) && name[len(Mark)] >= '8'
}

func isTagged[N string | []byte](name N) bool {
	return isProtected(name) && name[len(Mark)+14] == '8'
}

func isProtected[N string | []byte](name N) bool {
	return len(name) > prefixLen && string(name[:len(Mark)]) == Mark && name[prefixLen-1] == '-'
}

// Protection returns what protects a name, nothing if it has none.
func Protection[N string | []byte](name N) (prefix N) {
	if isProtected(name) {
		prefix = name[:prefixLen]
	}
	return prefix
}
