// Package sasl is how a client proves to ZooKeeper's servers who it is, by SASL
// (RFC 4422):
//
//	framework.Config{SASL: sasl.DigestMD5("orders", password)}
//
// A Mechanism of your own, such as Kerberos, is a type with three methods.
package sasl

import "context"

// Mechanism proves a client to a server, on each connection. Several goroutines may call
// it. Nothing of it that is secret may show in what package fmt prints of it.
type Mechanism interface {
	// Name is the mechanism's registered name, such as "DIGEST-MD5" or "GSSAPI".
	Name() string

	// User is who the servers will take the client for, as access lists write it: "orders", or
	// "alice@EXAMPLE.ORG". It is for errors, and "" if it is not known.
	User() string

	// Begin is called before each dialing, so that it may take its time, up to
	// Config.ConnectTimeout: for a ticket, say. It must return when ctx ends. After an error
	// the server is not dialed. The error counts as a refusal, which is
	// framework.ErrAuthFailed, unless ctx has ended or it is a net.Error that is of no file.
	Begin(ctx context.Context, server Server) (Exchange, error)
}

// Server is who a client is about to prove itself to.
type Server struct {
	Host string // as it is written in the connection string, without the port
	Addr string // host:port that is dialed: an address, unless names are dialed as they are
}

// Exchange is what is said on one connection. One goroutine calls it. It must
// return at once.
type Exchange interface {
	// Step takes what the server has said and returns what to answer. The first challenge is
	// nil. A nil answer is not sent, and an empty one is. The exchange is over once done is
	// true, and the server has accepted the answer, if there is one. It takes two to ten steps: no
	// challenge after the first answer means that the server has no SASL.
	// An error is framework.ErrAuthFailed for the calls of the client.
	Step(challenge []byte) (answer []byte, done bool, err error)
}
