package sasl

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/digestmd5"
)

// challenge is as ZooKeeper's.
const challenge = `realm="zk-sasl-md5",nonce="n\"1",charset=utf-8,algorithm=md5-sess`

func begin(t *testing.T, user, password string) Exchange {
	t.Helper()
	e, err := DigestMD5(user, password).Begin(t.Context(), Server{})
	require.NoError(t, err)
	answer, done, err := e.Step(nil)
	require.NoError(t, err)
	assert.False(t, done)
	assert.Equal(t, []byte{}, answer, "it is sent, and has no bytes")
	return e
}

func TestDigestMD5(t *testing.T) {
	for _, user := range []string{"bob", `b"o\b,=`, "Jürgen", "чертёж", "svc/host@REALM"} {
		e := begin(t, user, "päss,\"word\\")
		answer, done, err := e.Step([]byte(challenge))
		require.NoError(t, err)
		assert.False(t, done)
		d, err := digestmd5.Parse(string(answer))
		require.NoError(t, err)
		p := digestmd5.Proof{
			User: user, Realm: "zk-sasl-md5", Password: "päss,\"word\\", Nonce: `n"1`, CNonce: d["cnonce"],
			Count: "00000001", URI: "zookeeper/zk-sasl-md5", UTF8: true,
		}
		assert.GreaterOrEqual(t, len(p.CNonce), 16)
		assert.Equal(t, digestmd5.Directives{
			"charset": "utf-8", "username": user, "realm": p.Realm, "nonce": p.Nonce, "nc": p.Count, "cnonce": p.CNonce,
			"digest-uri": p.URI, "maxbuf": "65536", "response": p.Client(), "qop": "auth",
		}, d)
		answer, done, err = e.Step([]byte("rspauth=" + p.Server()))
		require.NoError(t, err)
		assert.True(t, done)
		assert.Nil(t, answer)
	}
}

func TestDigestMD5Refuses(t *testing.T) {
	for said, want := range map[string]string{
		"":                             "the server's challenge is none of DIGEST-MD5",
		"x":                            "challenge: a directive has no value",
		`realm="a",algorithm=md5-sess`: "is none of DIGEST-MD5",
		`nonce="a",algorithm=md5`:      "is none of DIGEST-MD5",
		`nonce="a",algorithm=md5-sess,qop="auth-conf"`:   `offers only the protection "auth-conf"`,
		`nonce="a",algorithm=md5-sess,realm="zk-sasl-m"`: "the server takes no UTF-8, and user or password is not ASCII",
	} {
		_, done, err := begin(t, "Jürgen", "secret").Step([]byte(said))
		require.ErrorContains(t, err, want, said)
		assert.False(t, done)
	}
	for name, said := range map[string][]byte{
		"nothing": nil, "empty": {}, "no directive": []byte("x"), "another proof": []byte("rspauth=ea40f60335c427b5527b84dbabcdfffd"), "an error": []byte(`error="x"`),
	} {
		e := begin(t, "bob", "secret")
		_, _, err := e.Step([]byte(challenge + `,qop="auth-int, auth"`))
		require.NoError(t, err)
		_, _, err = e.Step(said)
		want := "the server does not prove that it knows the password"
		if said == nil {
			want = "unknown user or wrong password"
		}
		require.ErrorContains(t, err, want, name)
	}
	for want, m := range map[string]Mechanism{
		"the user is empty": DigestMD5("", "secret"), "is not UTF-8": DigestMD5("bob", "\xff"), "user or password is": DigestMD5("\xff", ""),
	} {
		_, err := m.Begin(t.Context(), Server{})
		require.ErrorContains(t, err, want)
	}
}

func TestDigestMD5DoesNotPrint(t *testing.T) {
	m := DigestMD5("bob", "hunter2")
	within := struct {
		M      Mechanism
		hidden Mechanism
	}{m, m}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		assert.Equal(t, "DIGEST-MD5:bob", fmt.Sprintf(verb, m))
		text := fmt.Sprintf(verb, within)
		assert.NotContains(t, text, "hunter2")
		assert.NotContains(t, text, fmt.Sprintf("%x", "hunter2"))
		assert.NotContains(t, text, "104 117 110 116 101 114 50") // its bytes
	}
	text, err := json.Marshal(within)
	require.NoError(t, err)
	assert.JSONEq(t, `{"M":"DIGEST-MD5:bob"}`, string(text))
	_ = within.hidden
}
