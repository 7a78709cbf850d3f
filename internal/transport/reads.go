package transport

import "github.com/paddock-zk/paddock/internal/wire"

// The states of what is known of how servers take one request for several reads.
const (
	readsUnknown int32 = iota
	readsTogether
	readsApart
)

// ReadsApart is whether each read needs a request of its own.
//
// Servers before 3.6 do not know the request for several, and end the connection on which
// it comes. So if a client's first such request had no answer, or was answered as
// unknown, the client does not send another.
//
// Source: ZooKeeper's FinalRequestProcessor, multiRead; of 3.5,
// UnimplementedRequestProcessor.
func (l *Transport) ReadsApart() bool { return l.reads.Load() == readsApart }

// KnowsReads says that a server has answered another request that came with that one, so
// that a lost reply to the first of several reads means nothing.
func (l *Transport) KnowsReads() { l.reads.CompareAndSwap(readsUnknown, readsTogether) }

// LearnReads takes in how a server has taken such a request. It has to see each.
func (l *Transport) LearnReads(call *Call) {
	switch {
	case call.Replied() && call.Code() == wire.CodeUnimplemented:
		l.reads.Store(readsApart)
	case call.Replied():
		l.reads.CompareAndSwap(readsUnknown, readsTogether)
	case !call.SentAt().IsZero():
		l.reads.CompareAndSwap(readsUnknown, readsApart)
	}
}
