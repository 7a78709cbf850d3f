package kerberos

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework/sasl"
)

var (
	alice  = parsePrincipal("alice@EXAMPLE.ORG")
	server = parsePrincipal("zookeeper/zk1.example.org@EXAMPLE.ORG")
)

// keysOf is a keytab with one key.
func keysOf(t *testing.T, p principal, password string, kind int32) *keytab.Keytab {
	t.Helper()
	keys := keytab.New()
	require.NoError(t, keys.AddEntry(p.PrincipalNameString(), p.realm, password, time.Unix(1, 0), 1, kind))
	return keys
}

// ticketWith is a ticket of alice for the server.
func ticketWith(t *testing.T, keys *keytab.Keytab, kind int32) *ticket {
	t.Helper()
	now := time.Now()
	tkt, key, err := messages.NewTicket(alice.PrincipalName, alice.realm, server.PrincipalName, server.realm, types.NewKrbFlags(), keys, kind, 1, now, now, now.Add(time.Hour), now)
	require.NoError(t, err)
	return &ticket{Ticket: tkt, key: key, from: now, till: now.Add(time.Hour)}
}

// acceptor is a server that has read a ticket.
type acceptor struct {
	key types.EncryptionKey
	seq uint64
}

// accept reads the first token.
func accept(t *testing.T, keys *keytab.Keytab, token []byte) acceptor {
	t.Helper()
	const header = 2 + 2 + len(krb5OID) + len(tokenAPReq) // for a token of 256 bytes or more
	require.Greater(t, len(token), 256)
	require.Equal(t, byte(0x60), token[0])
	require.Equal(t, krb5OID+tokenAPReq, string(token[4:header]))
	var request messages.APReq
	require.NoError(t, request.Unmarshal(token[header:]))
	ok, err := request.Verify(keys, time.Minute, types.HostAddress{}, nil)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, alice.PrincipalName, request.Authenticator.CName)
	assert.Equal(t, alice.realm, request.Authenticator.CRealm)
	sum := request.Authenticator.Cksum.Checksum
	require.Len(t, sum, 24)
	assert.Equal(t, uint32(integrity), binary.LittleEndian.Uint32(sum[20:]))
	return acceptor{request.Authenticator.SubKey, uint64(request.Authenticator.SeqNumber)}
}

// sign is a wrap token, rotated by some bytes.
func (a acceptor) sign(t *testing.T, flags byte, message string, rotate int) []byte {
	t.Helper()
	kind, err := crypto.GetEtype(a.key.KeyType)
	require.NoError(t, err)
	header := make([]byte, 16)
	copy(header, []byte{5, 4, flags, 0xff})
	binary.BigEndian.PutUint64(header[8:], a.seq)
	sum, err := kind.GetChecksumHash(a.key.KeyValue, append([]byte(message), header...), keyusage.GSSAPI_ACCEPTOR_SEAL)
	require.NoError(t, err)
	binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
	binary.BigEndian.PutUint16(header[6:], uint16(rotate))
	rest := append([]byte(message), sum...)
	rest = append(rest[len(rest)-rotate:len(rest):len(rest)], rest[:len(rest)-rotate]...)
	return append(header, rest...)
}

func begun(t *testing.T, tkt *ticket) (e sasl.Exchange, first []byte, accepted *int) {
	t.Helper()
	accepted = new(int)
	e, err := newExchange(alice, tkt, func(ok bool) {
		if ok {
			*accepted++
		}
	})
	require.NoError(t, err)
	first, done, err := e.Step(nil)
	require.NoError(t, err)
	assert.False(t, done)
	return e, first, accepted
}

const offer = "\x01\x00\x10\x00" // no layer, and messages of 4096 bytes

func TestExchange(t *testing.T) {
	for _, kind := range []int32{etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128} {
		keys := keysOf(t, server, "secret", kind)
		for _, rotate := range []int{0, 12} {
			e, first, accepted := begun(t, ticketWith(t, keys, kind))
			a := accept(t, keys, first)
			answer, done, err := e.Step(a.sign(t, fromAcceptor, offer, rotate))
			require.NoError(t, err)
			assert.True(t, done)
			assert.Equal(t, 1, *accepted)
			require.Greater(t, len(answer), 20)
			assert.Equal(t, "\x01\x00\x00\x00", string(answer[16:20]))
			assert.Equal(t, a.seq, binary.BigEndian.Uint64(answer[8:]))
			want := &exchange{key: a.key, sequence: a.seq}
			want.etype, _ = crypto.GetEtype(kind)
			assert.Equal(t, want.wrap([]byte{1, 0, 0, 0}), answer)
		}
	}
}

// Only a server that can read the ticket is answered, and its ticket is used again.
func TestExchangeRefuses(t *testing.T) {
	const kind = etypeID.AES256_CTS_HMAC_SHA1_96
	keys := keysOf(t, server, "secret", kind)
	const token, other = "the server's answer is no token of GSSAPI", "does not prove that it can read the ticket"
	for name, tc := range map[string]struct {
		say  func(a acceptor) []byte
		want string
	}{
		"nothing":   {func(acceptor) []byte { return nil }, token},
		"empty":     {func(acceptor) []byte { return []byte{} }, token},
		"short":     {func(a acceptor) []byte { return a.sign(t, fromAcceptor, offer, 0)[:15] }, token},
		"no sum":    {func(a acceptor) []byte { return a.sign(t, fromAcceptor, offer, 0)[:16] }, token},
		"mirrored":  {func(a acceptor) []byte { return a.sign(t, 0, offer, 0) }, token},
		"encrypted": {func(a acceptor) []byte { return a.sign(t, fromAcceptor|2, offer, 0) }, token},
		"another key": {func(a acceptor) []byte {
			a.key.KeyValue = make([]byte, len(a.key.KeyValue))
			return a.sign(t, fromAcceptor, offer, 0)
		}, other},
		"changed": {func(a acceptor) []byte { b := a.sign(t, fromAcceptor, offer, 0); b[17] ^= 1; return b }, other},
		"unsigned": {func(acceptor) []byte {
			return []byte("\x05\x04\x01\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + offer)
		}, other},
		"an old one": {func(acceptor) []byte {
			_, first, _ := begun(t, ticketWith(t, keys, kind))
			return accept(t, keys, first).sign(t, fromAcceptor, offer, 0)
		}, other},
		"longer":         {func(a acceptor) []byte { return a.sign(t, fromAcceptor, offer+"x", 0) }, "the server's offer is none of GSSAPI"},
		"with a layer":   {func(a acceptor) []byte { return a.sign(t, fromAcceptor, "\x06\x00\x10\x00", 0) }, "the server insists on signed or encrypted messages"},
		"rotated by all": {func(a acceptor) []byte { b := a.sign(t, fromAcceptor, offer, 0); b[7] = 5; return b }, other},
	} {
		e, first, accepted := begun(t, ticketWith(t, keys, kind))
		answer, done, err := e.Step(tc.say(accept(t, keys, first)))
		require.ErrorContains(t, err, tc.want, name)
		assert.Nil(t, answer, name)
		assert.False(t, done, name)
		assert.Zero(t, *accepted, name)
	}
	_, err := newExchange(alice, &ticket{Ticket: messages.Ticket{SName: server.PrincipalName}, key: types.EncryptionKey{KeyType: etypeID.RC4_HMAC}}, nil)
	require.ErrorContains(t, err, "the KDC's ticket for zookeeper/zk1.example.org has a key of the old type 23")
}
