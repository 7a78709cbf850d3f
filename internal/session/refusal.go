package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/session/watch"
	"github.com/paddock-zk/paddock/internal/transport"
	"github.com/paddock-zk/paddock/internal/wire"
)

// Refusal is Error for one operation on a path: of a refused access it says which
// right on which node was needed, and whose credentials were given. Of a node that cannot be
// made it names the parent that is missing, and of an access list what may be wrong with it.
func (s *Session) Refusal(op wire.Op, path string, code wire.Code) error {
	if code != wire.CodeNoAuth && code != wire.CodeNoNode && code != wire.CodeInvalidACL {
		return Error(code)
	}
	access := func(why string) error { return &accessError{Error(code), why, s.transport.Shown(), &s.cfg.Transport} }
	switch right, node := need(op, path); {
	case code == wire.CodeInvalidACL:
		return access("an entry of AuthACL needs an identity that the servers have taken, and any other one a scheme that they know and an identity of its form")
	case right == "" || node == "":
	case code == wire.CodeNoAuth:
		return access(right + " on " + node + " is needed")
	case right == "CREATE":
		return &parentError{node}
	}
	return Error(code)
}

// parentError is a node that could not be made.
type parentError struct{ parent string }

// Error implements error.
func (e *parentError) Error() string {
	return fmt.Sprintf("%v: %s, the parent, is missing", zk.ErrNoNode, e.parent)
}

// Unwrap gives zk.ErrNoNode.
func (e *parentError) Unwrap() error { return zk.ErrNoNode }

// accessError is a refused access, or access list.
type accessError struct {
	err   error
	why   string
	shown []string // identities of the certificate
	cfg   *transport.Config
}

// Error implements error.
func (e *accessError) Error() string {
	given := cmp.Or(strings.Join(slices.Concat(e.shown, e.cfg.Identities()), ", "), "none")
	return fmt.Sprintf("%v: %s (credentials given: %s)", e.err, e.why, given)
}

// Unwrap gives zk.ErrNoAuth or zk.ErrInvalidACL.
func (e *accessError) Unwrap() error { return e.err }

// need is which right on which node an operation takes, "" if it takes none.
//
// Source: ZooKeeper's PrepRequestProcessor and FinalRequestProcessor.
func need(op wire.Op, path string) (right, node string) {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return "CREATE", watch.Above(path)
	case wire.OpDelete:
		return "DELETE", watch.Above(path)
	case wire.OpSetData:
		return "WRITE", path
	case wire.OpSetACL:
		return "ADMIN", path
	case wire.OpGetACL:
		return "READ or ADMIN", path
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2, wire.OpCheck: // exists from 3.9 on
		return "READ", path
	}
	return "", ""
}
