package zktest

import (
	"encoding/asn1"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// subjects are names of certificates, from the country to the host, and what Java makes of them.
var subjects = []struct {
	name []attributeSET
	java string
}{
	{[]attributeSET{{named("DE", 2, 5, 4, 6)}, {named(`Pad, dock "+" <a>;\=#`, 2, 5, 4, 10)}, {named("alice-host", 2, 5, 4, 3)}},
		`CN=alice-host,O=Pad\, dock \"\+\" \<a\>\;\\\=\#,C=DE`},
	{[]attributeSET{{named("Bäyern", 2, 5, 4, 8)}, {named(" München  ", 2, 5, 4, 7)}, {named("#1", 2, 5, 4, 9)}, {named(" ", 2, 5, 4, 11)}},
		`OU=\ ,STREET=\#1,L=\ München\ \ ,ST=Bäyern`},
	{[]attributeSET{{named("org", 0, 9, 2342, 19200300, 100, 1, 25)}, {named("u1", 0, 9, 2342, 19200300, 100, 1, 1), named("x", 2, 5, 4, 3)}},
		`CN=x+UID=u1,DC=org`},
	{[]attributeSET{{named("17", 2, 5, 4, 5)}, {named("a@b", 1, 2, 840, 113549, 1, 9, 1)}, {named("", 2, 5, 4, 3)}},
		`CN=,1.2.840.113549.1.9.1=#0c03614062,2.5.4.5=#0c023137`},
}

func named(value string, oid ...int) attribute {
	return attribute{Type: oid, Value: asn1.RawValue{FullBytes: append([]byte{asn1.TagUTF8String, byte(len(value))}, value...)}}
}

func TestSubjectsAsJavaPrintsThem(t *testing.T) {
	for _, s := range subjects {
		raw, err := asn1.Marshal(s.name)
		require.NoError(t, err)
		assert.Equal(t, s.java, javaSubject(raw))
	}
	assert.Empty(t, javaSubject([]byte("x")))
}
