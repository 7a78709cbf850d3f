package sasl

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/paddock-zk/paddock/internal/digestmd5"
)

// DigestMD5 is the mechanism DIGEST-MD5: the servers have a list of users and passwords,
// in the section Server of their JAAS configuration. The password does not travel, but
// whoever hears the exchange can try passwords on it. So use TLS as well. The client also
// verifies that the server knows the password.
//
// User and password are UTF-8. It is printed and encoded as text without the password.
//
// Source: RFC 2831, and what ZooKeeper's servers expect in it: the service
// zookeeper/zk-sasl-md5.
func DigestMD5(user, password string) Mechanism {
	return &digestMD5{user: user, password: func() string { return password }}
}

type digestMD5 struct {
	user     string
	password func() string // package fmt looks into no function
}

// Name implements Mechanism.
func (*digestMD5) Name() string { return "DIGEST-MD5" }

// User implements Mechanism.
func (m *digestMD5) User() string { return m.user }

// String is mechanism and user.
func (m *digestMD5) String() string { return m.Name() + ":" + m.user }

// Format prints mechanism and user, whatever the verb.
func (m *digestMD5) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, m.String()) }

// MarshalText returns mechanism and user, for JSON, and so for structured logs.
func (m *digestMD5) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Begin implements Mechanism.
func (m *digestMD5) Begin(context.Context, Server) (Exchange, error) {
	password := m.password()
	switch {
	case m.user == "":
		return nil, errors.New("the user is empty")
	case !utf8.ValidString(m.user), !utf8.ValidString(password):
		return nil, errors.New("user or password is not UTF-8")
	}
	return &digestMD5Exchange{user: m.user, password: password}, nil
}

// digestMD5Exchange is empty answer, response, and what the server proves itself with.
type digestMD5Exchange struct {
	user, password string
	steps          int
	proof          digestmd5.Proof
}

// Step implements Exchange.
func (e *digestMD5Exchange) Step(challenge []byte) (answer []byte, done bool, err error) {
	e.steps++
	switch e.steps {
	case 1:
		return []byte{}, false, nil
	case 2:
		answer, err = e.respond(string(challenge))
		return answer, false, err
	}
	return nil, true, e.verify(challenge)
}

func (e *digestMD5Exchange) respond(challenge string) ([]byte, error) {
	c, err := digestmd5.Parse(challenge)
	if err != nil {
		return nil, fmt.Errorf("challenge: %w", err)
	}
	e.proof = digestmd5.Proof{
		User: e.user, Password: e.password, Nonce: c["nonce"], CNonce: rand.Text(),
		Count: "00000001", URI: "zookeeper/zk-sasl-md5", UTF8: strings.EqualFold(c["charset"], "utf-8"),
	}
	if realms := c.Realms(); len(realms) > 0 {
		e.proof.Realm = realms[0]
	}
	switch {
	case c["nonce"] == "", !strings.EqualFold(c["algorithm"], "md5-sess"):
		return nil, errors.New("the server's challenge is none of DIGEST-MD5")
	case c["qop"] != "" && !hasAuth(c["qop"]):
		return nil, fmt.Errorf("the server offers only the protection %q, and this client speaks auth", c["qop"])
	case !e.proof.UTF8 && !ascii(e.user+e.password):
		return nil, errors.New("the server takes no UTF-8, and user or password is not ASCII")
	}
	var b strings.Builder
	if e.proof.UTF8 {
		b.WriteString("charset=utf-8,")
	}
	p := e.proof
	_, _ = fmt.Fprintf(&b, "username=%s,realm=%s,nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,maxbuf=65536,response=%s,qop=auth",
		digestmd5.Quote(p.User), digestmd5.Quote(p.Realm), digestmd5.Quote(p.Nonce), p.Count, digestmd5.Quote(p.CNonce), digestmd5.Quote(p.URI), p.Client())
	return []byte(b.String()), nil
}

// verify is whether the server knows the password, too. One that lets clients
// in whose proof has failed (zookeeper.allowSaslFailedClients) says nothing.
func (e *digestMD5Exchange) verify(challenge []byte) error {
	if challenge == nil {
		return errors.New("the server did not accept it: unknown user or wrong password")
	}
	c, err := digestmd5.Parse(string(challenge))
	if err != nil || subtle.ConstantTimeCompare([]byte(c["rspauth"]), []byte(e.proof.Server())) != 1 {
		return errors.New("the server does not prove that it knows the password: it is another server than it should be")
	}
	return nil
}

func hasAuth(qop string) bool {
	for offer := range strings.SplitSeq(qop, ",") {
		if strings.EqualFold(strings.TrimSpace(offer), "auth") {
			return true
		}
	}
	return false
}

func ascii(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }
