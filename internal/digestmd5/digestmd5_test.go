package digestmd5

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The example of RFC 2831, section 4.
func TestProofs(t *testing.T) {
	p := Proof{
		User: "chris", Realm: "elwood.innosoft.com", Password: "secret", Nonce: "OA6MG9tEQGm2hh", CNonce: "OA6MHXh6VqTrRk",
		Count: "00000001", URI: "imap/elwood.innosoft.com", UTF8: true,
	}
	assert.Equal(t, "d388dad90d4bbd760a152321f2143af7", p.Client())
	assert.Equal(t, "ea40f60335c427b5527b84dbabcdfffd", p.Server())
	latin := p
	latin.Password = "s\xe9cret"
	latin.UTF8 = false
	p.Password = "sécret"
	assert.Equal(t, latin.Client(), p.Client(), "what ISO 8859-1 has is hashed in it")
	p.AuthzID = "other"
	assert.NotEqual(t, latin.Client(), p.Client())
}

func TestParse(t *testing.T) {
	d, err := Parse(`realm="a b",nonce="x\"\\y" , charset=utf-8,,Algorithm=md5-sess, realm="c",empty=""`)
	require.NoError(t, err)
	assert.Equal(t, Directives{"realm": "a b\nc", "nonce": `x"\y`, "charset": "utf-8", "algorithm": "md5-sess", "empty": ""}, d)
	assert.Equal(t, []string{"a b", "c"}, d.Realms())
	d, err = Parse("")
	require.NoError(t, err)
	assert.Empty(t, d.Realms())
	for message, want := range map[string]string{
		"hunter2":              "a directive has no value",
		`nonce="hunter2`:       `directive "nonce": its quotation mark is not closed`,
		`nonce="hunter2\`:      `directive "nonce": its quotation mark is not closed`,
		`nonce="a"hunter2`:     `directive "nonce": no comma behind it`,
		`nonce=a,nonce=hunter`: `directive "nonce" comes twice`,
	} {
		_, err := Parse(message)
		require.EqualError(t, err, want, message)
	}
	for _, value := range []string{`plain`, `quo"te`, `back\slash`, `com,ma`, `ü€`, ``} {
		d, err := Parse("v=" + Quote(value))
		require.NoError(t, err)
		assert.Equal(t, value, d["v"])
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`realm="a",nonce="b",charset=utf-8`)
	f.Fuzz(func(t *testing.T, message string) {
		d, err := Parse(message)
		if err == nil && message == "" {
			require.Empty(t, d)
		}
	})
}
