package kerberos

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/paddock-zk/paddock/framework/sasl"
)

// exchange is the ticket, the server's offer of protection, and the answer that none is
// wanted. The server's offer is signed with a key that is new in each exchange and that only
// whoever can read the ticket knows. So it proves the server, too.
//
// Source: RFC 4752, RFC 4121.
type exchange struct {
	first    []byte
	key      types.EncryptionKey // of this exchange
	etype    etype.EType
	sequence uint64
	shown    func(accepted bool)
	steps    int
}

// newExchange prepares to show a ticket. shown is called when the ticket is sent, and again,
// with true, when the server has proven that it can read it.
func newExchange(client principal, t *ticket, shown func(accepted bool)) (sasl.Exchange, error) {
	kind := t.key.KeyType
	switch kind {
	case etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192:
	default:
		return nil, fmt.Errorf("the KDC's ticket for %s has a key of the old type %d: the server's principal needs a key of AES", t.SName.PrincipalNameString(), kind)
	}
	e := &exchange{shown: shown, key: types.EncryptionKey{KeyType: kind, KeyValue: make([]byte, len(t.key.KeyValue))}}
	_, _ = rand.Read(e.key.KeyValue) // it never fails
	var err error
	if e.etype, err = crypto.GetEtype(kind); err != nil {
		return nil, err
	}
	a, err := types.NewAuthenticator(client.realm, client.PrincipalName)
	if err != nil {
		return nil, err
	}
	a.SubKey, e.sequence = e.key, uint64(a.SeqNumber)
	a.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: bindings()}
	request, err := messages.NewAPReq(t.Ticket, t.key, a)
	if err != nil {
		return nil, err
	}
	body, err := request.Marshal()
	if err != nil {
		return nil, err
	}
	e.first = asn1tools.AddASNAppTag(append([]byte(krb5OID+tokenAPReq), body...), 0)
	return e, nil
}

const (
	krb5OID    = "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" // 1.2.840.113554.1.2.2
	tokenAPReq = "\x01\x00"
	integrity  = 0x20 // the flag of RFC 4121 by which messages can be signed
)

// bindings says that there are no channel bindings, and which flags are set.
func bindings() []byte {
	b := make([]byte, 24)
	binary.LittleEndian.PutUint32(b, 16) // bytes of bindings
	binary.LittleEndian.PutUint32(b[20:], integrity)
	return b
}

// Step implements sasl.Exchange.
func (e *exchange) Step(challenge []byte) (answer []byte, done bool, err error) {
	e.steps++
	if e.steps == 1 {
		e.shown(false)
		return e.first, false, nil
	}
	offer, err := e.unwrap(challenge)
	switch {
	case err != nil:
		return nil, false, err
	case len(offer) != 4:
		return nil, false, errors.New("the server's offer is none of GSSAPI")
	case offer[0]&layerNone == 0:
		return nil, false, errors.New("the server insists on signed or encrypted messages, which ZooKeeper's protocol does not have")
	}
	e.shown(true)
	return e.wrap([]byte{layerNone, 0, 0, 0}), true, nil // as nobody else than the ticket says
}

// layerNone is that messages are not protected. ZooKeeper has nothing else.
const layerNone = 1

// The header of a token is its kind, flags, a filler, the length of the checksum,
// how far the rest is rotated, and a number.
const (
	wrapHeader   = 16
	wrapKind     = "\x05\x04"
	fromAcceptor = 1
)

// wrap signs a message.
func (e *exchange) wrap(message []byte) []byte {
	header := make([]byte, wrapHeader)
	copy(header, wrapKind+"\x00\xff")
	binary.BigEndian.PutUint64(header[8:], e.sequence)
	sum := e.sum(message, header, keyusage.GSSAPI_INITIATOR_SEAL)
	binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
	return append(append(header, message...), sum...)
}

// unwrap is what the server has signed.
func (e *exchange) unwrap(token []byte) ([]byte, error) {
	if len(token) < wrapHeader || string(token[:2]) != wrapKind || token[2] != fromAcceptor {
		return nil, errors.New("the server's answer is no token of GSSAPI")
	}
	header, rest := token[:wrapHeader], token[wrapHeader:]
	size, rotated := int(binary.BigEndian.Uint16(header[4:])), int(binary.BigEndian.Uint16(header[6:]))
	if size > len(rest) {
		return nil, errors.New("the server's answer is no token of GSSAPI")
	}
	if n := len(rest); n > 0 {
		rotated %= n
		rest = append(append([]byte{}, rest[rotated:]...), rest[:rotated]...)
	}
	message, sum := rest[:len(rest)-size], rest[len(rest)-size:]
	if want := e.sum(message, header, keyusage.GSSAPI_ACCEPTOR_SEAL); want == nil || !hmac.Equal(want, sum) {
		return nil, errors.New("the server does not prove that it can read the ticket: it is another server than it should be")
	}
	return message, nil
}

// sum is the checksum of a message and its header, in which two lengths count as 0.
func (e *exchange) sum(message, header []byte, usage uint32) []byte {
	signed := append(append([]byte{}, message...), header...)
	clear(signed[len(message)+4 : len(message)+8])
	sum, err := e.etype.GetChecksumHash(e.key.KeyValue, signed, usage)
	if err != nil {
		return nil
	}
	return sum
}
