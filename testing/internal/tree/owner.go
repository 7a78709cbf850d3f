package tree

import "time"

// The ephemeralOwner of a node is a session, or says that the node is removed
// by the server on its own. Source: ZooKeeper EphemeralType.
const (
	// OwnerContainer is the owner of a container.
	OwnerContainer int64 = -1 << 63

	ownerTTLMask int64 = -1 << 56
	// maxTTL is the longest time to live, in milliseconds, that an owner can hold.
	maxTTL int64 = 1<<40 - 1
)

// ownerTTL returns the owner of a node that lives ttl milliseconds after its
// last change, and false if there is none.
func ownerTTL(ttl int64) (int64, bool) {
	if ttl <= 0 || ttl > maxTTL {
		return 0, false
	}
	return ownerTTLMask | ttl, true
}

// TTL returns the time to live that owner stands for, and false if it does not.
func TTL(owner int64) (time.Duration, bool) {
	if !isTTL(owner) {
		return 0, false
	}
	return time.Duration(owner&^ownerTTLMask) * time.Millisecond, true
}

// isTTL reports whether owner stands for a time to live.
func isTTL(owner int64) bool { return owner&ownerTTLMask == ownerTTLMask }

// isSession reports whether owner is a session, which makes the node ephemeral.
func isSession(owner int64) bool {
	return owner != 0 && owner != OwnerContainer && !isTTL(owner)
}
