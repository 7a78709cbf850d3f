package framework

import (
	"fmt"
	"slices"
	"time"
)

// CreateOption changes one Create.
type CreateOption interface{ create(*createOptions) }

// GetOption changes one Get or GetW.
type GetOption interface{ get(*getOptions) }

// SetOption changes one Set or SetACL.
type SetOption interface{ set(*setOptions) }

// DeleteOption changes one Delete.
type DeleteOption interface{ delete(*deleteOptions) }

// CommitOption changes one Commit.
type CommitOption interface{ commit(*commitOptions) }

type createOptions struct {
	parents    bool
	protected  bool
	idempotent bool
	orSet      bool
	acl        []ACL
	hasACL     bool
	ttl        time.Duration
	hasTTL     bool
	compressed bool
}

type getOptions struct{ compressed bool }

type setOptions struct{ idempotent, compressed bool }

type deleteOptions struct {
	guaranteed bool
	recursive  bool
	ifExists   bool
	idempotent bool
}

type commitOptions struct {
	idempotent  bool
	receipts    string // the parent of the receipt
	hasReceipts bool
}

type createOption func(*createOptions)

func (f createOption) create(o *createOptions) { f(o) }

type deleteOption func(*deleteOptions)

func (f deleteOption) delete(o *deleteOptions) { f(o) }

// Parents makes missing parents, as containers where the server has them, with
// the access list that Config.ACL gives each.
func Parents() CreateOption { return createOption(func(o *createOptions) { o.parents = true }) }

// Protected puts "_c_" and a UUID into the name. By it the client finds its node
// after a lost reply, and does not make a second one. If the call fails, the client
// deletes the node that it may have made, in the background. Others may see the node
// until then, whatever the error is. A node that is not ephemeral stays if the client
// is closed before that is done.
//
// A node that others delete, such as an item of a queue, can be gone before the client
// looks for it. The client then makes a second one, and the item is there twice. Where
// that matters, choose the name yourself, and make the node in a transaction with
// Receipt.
//
// Source: Curator's withProtection; names are the same.
func Protected() CreateOption { return createOption(func(o *createOptions) { o.protected = true }) }

// ACLs overrides Config.ACL for the node, not for its parents. ZooKeeper refuses an
// empty list with ErrInvalidACL: WorldACL(PermAll) lets everybody in.
func ACLs(acl ...ACL) CreateOption {
	acl = slices.Clone(acl) // a kept node is made with it again
	return createOption(func(o *createOptions) { o.acl, o.hasACL = acl, true })
}

// TTL lets the server remove a persistent node that has no children and was
// not modified for d. Servers have it switched off unless
// zookeeper.extendedTypesEnabled is set. At least a millisecond, at most 34 years.
func TTL(d time.Duration) CreateOption {
	return createOption(func(o *createOptions) { o.ttl, o.hasTTL = d, true })
}

// OrSet sets the data if the node exists, whatever its version.
//
// The node must have the owner that Create would have given it. In place of an
// ephemeral node that is an ephemeral node of this client's session. In place of any
// other it is a node that is not ephemeral. Otherwise the error is ErrNodeExists, and
// its text says which session has the node and what to do. The data is then left alone.
// It is set only if the node was replaced in between, or if ZooKeeper 3.9 refuses to
// describe it; the text says so. The servers do not show whether a node is a container
// or has a time to live, so OrSet takes each of these and persistent nodes for the same.
func OrSet() CreateOption { return createOption(func(o *createOptions) { o.orSet = true }) }

// Guaranteed goes on in the background if the call itself fails in a way that
// may pass, or if its ctx has ended. The call still returns the error. The
// background work deletes any version. It ends when the node is gone, when the
// servers refuse for good, or when the client is closed.
func Guaranteed() DeleteOption { return deleteOption(func(o *deleteOptions) { o.guaranteed = true }) }

// Recursive deletes what is below as well. The version is that of path alone.
func Recursive() DeleteOption { return deleteOption(func(o *deleteOptions) { o.recursive = true }) }

// IfExists makes an absent node a success.
func IfExists() DeleteOption { return deleteOption(func(o *deleteOptions) { o.ifExists = true }) }

// IdempotentOption may be given to every call that writes.
type IdempotentOption struct{}

// Idempotent settles a lost reply by reading back. The call succeeds if the
// nodes are as intended:
//
//   - for Create, a node with this data that was never changed, with the owner that
//     OrSet describes;
//   - for Set, a node with this data at the version after the given one;
//   - for Delete, an absent node;
//   - for Commit, all of its operations, with nodes that it creates as for Create.
//
// Another client may have made them so: of two that raise a counter from 5 to 6, both
// can succeed. Where it matters who has written, use a transaction with Receipt, or
// write an id of your own into the data. Under a lock, Commit does not take the work of
// another owner for its own.
//
// It needs exact versions: with AnyVersion a repeated write may overwrite the write of
// another client. Commit refuses AnyVersion with ErrInvalidArgument; Receipt takes it.
func Idempotent() IdempotentOption { return IdempotentOption{} }

func (IdempotentOption) create(o *createOptions) { o.idempotent = true }
func (IdempotentOption) set(o *setOptions)       { o.idempotent = true }
func (IdempotentOption) delete(o *deleteOptions) { o.idempotent = true }
func (IdempotentOption) commit(o *commitOptions) { o.idempotent = true }

// mostTTL is what the owner of a node has room for: 40 bits of milliseconds.
//
// Source: ZooKeeper's EphemeralType.
const mostTTL = (1<<40 - 1) * time.Millisecond

func createOptionsOf(mode Mode, opts []CreateOption) (createOptions, error) {
	var o createOptions
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: option is nil", ErrInvalidArgument)
		}
		opt.create(&o)
	}
	switch {
	case mode < Persistent || mode > Container:
		return o, fmt.Errorf("%w: mode %d", ErrInvalidArgument, mode)
	case o.hasTTL && mode != Persistent && mode != PersistentSequential:
		return o, fmt.Errorf("%w: only persistent nodes have a TTL", ErrInvalidArgument)
	case o.hasTTL && o.ttl < time.Millisecond:
		return o, fmt.Errorf("%w: TTL %v is shorter than a millisecond", ErrInvalidArgument, o.ttl)
	case o.hasTTL && o.ttl > mostTTL:
		return o, fmt.Errorf("%w: TTL %v is longer than %v, the longest that servers take", ErrInvalidArgument, o.ttl, mostTTL)
	case o.orSet && mode.sequential():
		return o, fmt.Errorf("%w: OrSet on a sequential node, which never exists", ErrInvalidArgument)
	case o.orSet && o.protected:
		return o, fmt.Errorf("%w: OrSet on a protected node, which never exists", ErrInvalidArgument)
	case o.idempotent && mode.sequential() && !o.protected:
		return o, fmt.Errorf("%w: a sequential node is idempotent only if Protected", ErrInvalidArgument)
	}
	return o, nil
}

func getOptionsOf(opts []GetOption) (getOptions, error) {
	var o getOptions
	for _, opt := range opts {
		if opt == nil {
			return o, fmt.Errorf("%w: option is nil", ErrInvalidArgument)
		}
		opt.get(&o)
	}
	return o, nil
}
