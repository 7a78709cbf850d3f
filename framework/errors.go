package framework

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/paddock-zk/paddock/internal/contextend"
	"github.com/paddock-zk/paddock/internal/session"
	"github.com/paddock-zk/paddock/retry"
)

// OpError is what every call on a path returns. Err wraps one of the Err
// values, a network error, or ctx.Err() if the caller's context ended. If there
// was more than one attempt it is a *retry.Error, which says how many and for how
// long.
//
// If ctx ended the call, the error matches ctx.Err(). It does not match the cause
// of ctx, which can be any error, even ErrNoNode. The cause is in the text, and
// context.Cause(ctx) returns it.
//
// Errors of your own code, such as Config.DialContext or a Compression, are found
// by errors.Is and errors.As. There is one exception: errors and types of this
// module and of go-zookeeper are not found in them, since they would look like an
// answer of a server.
type OpError struct {
	Op   string // "create", "get", "acquire", ...
	Path string // in full, with chroot and namespace; as given if it is not valid
	Err  error
}

// Error implements error. A path with a line break or another character that no
// path may have is quoted, so that it cannot begin a line of a log.
func (e *OpError) Error() string {
	path := e.Path
	if strings.ContainsFunc(path, forbidden) {
		path = strconv.Quote(path)
	}
	return e.Op + " " + path + ": " + e.Err.Error()
}

// Unwrap gives the reason.
func (e *OpError) Unwrap() error { return e.Err }

var (
	// ErrNoNode reports that the node does not exist.
	ErrNoNode = zk.ErrNoNode
	// ErrNodeExists reports that the node exists already.
	ErrNodeExists = zk.ErrNodeExists
	// ErrBadVersion reports that the node's version is another one.
	ErrBadVersion = zk.ErrBadVersion
	// ErrNotEmpty reports that the node has children.
	ErrNotEmpty = zk.ErrNotEmpty
	// ErrNoAuth reports that an access list forbids the operation.
	ErrNoAuth = zk.ErrNoAuth
	// ErrAuthFailed reports that the server refused the credentials.
	ErrAuthFailed = zk.ErrAuthFailed
	// ErrInvalidACL reports an access list that is empty, malformed, or speaks
	// of identities that the session does not have.
	ErrInvalidACL = zk.ErrInvalidACL
	// ErrNoChildrenForEphemerals reports a node to be created below an ephemeral one.
	ErrNoChildrenForEphemerals = zk.ErrNoChildrenForEphemerals
	// ErrInvalidPath reports that the path breaks the rules; nothing was sent.
	ErrInvalidPath = zk.ErrInvalidPath
	// ErrSessionExpired reports that the session ended, and its ephemeral nodes with it.
	ErrSessionExpired = zk.ErrSessionExpired
)

var (
	// ErrClosed reports a call on a closed client. Subscriptions, kept nodes and caches that
	// were ended before their client match it as well, and say so.
	ErrClosed = session.ErrClosed
	// ErrNotConnected reports that no server could be asked in time, and that
	// nothing was left behind. If the caller's context ended while there was no
	// connection, the error matches ctx.Err() as well.
	ErrNotConnected = session.ErrNotConnected
	// ErrOutcomeUnknown reports a write whose reply was lost, or cannot be read: it may
	// have happened. The error also matches ctx.Err() if ctx ended. It never matches an
	// error that would mean that nothing was written, such as ErrNotConnected or a refusal.
	ErrOutcomeUnknown = session.ErrOutcomeUnknown
	// ErrTooLarge reports a request that is larger than Config.MaxRequest.
	ErrTooLarge = session.ErrTooLarge
	// ErrEndsConnection reports a request at which the servers have ended the connection
	// seven times, and five times right after a small write was answered there: it is larger
	// than they take, or they do not know the operation. Such a request is not sent again for
	// a minute, also by other calls. A request below 1 KiB is not taken for one if servers
	// have answered its operation to this client before. On a ClickHouse Keeper it may be,
	// where only some versions know the operation: creations of containers and of nodes with
	// a time to live, and the list of a session's nodes.
	ErrEndsConnection = session.ErrEndsConnection
	// ErrReplyTooLarge reports a reply that is larger than Config.MaxReply, such as
	// a very long list of children. The server has carried out the request. Of a write
	// the error matches ErrOutcomeUnknown as well: a transaction may have been refused.
	ErrReplyTooLarge = session.ErrReplyTooLarge
	// ErrTimeoutTooShort reports a lock that cannot be held. Either the servers
	// grant a session timeout below a second, or requests take too long for the
	// timeout that they grant.
	ErrTimeoutTooShort = session.ErrTimeoutTooShort
	// ErrUnsupported reports an operation that the server does not know: it is older
	// than ZooKeeper 3.6, or leaves the operation out. It ends the connection.
	ErrUnsupported = session.ErrUnsupported
	// ErrInvalidArgument reports options, modes or versions that do not fit
	// together; nothing was sent.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrNilContext reports a call that was given no context.
	ErrNilContext = session.ErrNilContext
)

// endedError is ErrClosed of what was ended by its user, while the client goes on.
type endedError string

// Error implements error.
func (e endedError) Error() string { return string(e) }

// Unwrap gives what callers look for.
func (endedError) Unwrap() error { return ErrClosed }

// Retryable reports that the failure may pass and that nothing was written.
func Retryable(err error) bool {
	return err != nil && !Ambiguous(err) && session.Passing(err) && !ended(err)
}

// ContextError is the end of a context as the errors of this package have it, for recipes. It
// matches ctx.Err() and nothing else: the cause, which can be any error, is in the text alone.
// So nobody takes it for the answer of a server. It is nil while ctx goes on.
func ContextError(ctx context.Context) error { return contextend.Of(ctx) }

// Ambiguous reports that a write may have happened.
func Ambiguous(err error) bool { return errors.Is(err, ErrOutcomeUnknown) }

func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Classify is a retry.Classifier for errors of this package. A failure that may
// pass is retry.Again, and a lost reply to a write retry.Unsure. Any other *OpError
// is retry.Stop, and so is ErrClosed. Errors from elsewhere are retry.Pass.
func Classify(err error) retry.Decision {
	var op *OpError
	if d := classify(err); d != retry.Stop || errors.As(err, &op) || errors.Is(err, ErrClosed) {
		return d
	}
	return retry.Pass
}

// classify is Classify for errors that can only be ours.
func classify(err error) retry.Decision {
	switch {
	case errors.Is(err, ErrClosed):
		return retry.Stop
	case Ambiguous(err):
		return retry.Unsure
	case session.Passing(err):
		return retry.Again
	}
	return retry.Stop
}
