package zktest

import (
	"crypto/tls"
	"encoding/asn1"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// addCertificateLocked adds the identity of a client's certificate, if that was verified.
//
// Source: ZooKeeper NettyServerCnxnFactory.CertificateVerifier, X509AuthenticationProvider.
func (c *conn) addCertificateLocked() {
	nc, ok := c.nc.(*tls.Conn)
	if !ok {
		return
	}
	if chains := nc.ConnectionState().VerifiedChains; len(chains) > 0 {
		c.addIDLocked(tree.ID{Scheme: "x509", ID: javaSubject(chains[0][0].RawSubject)})
	}
}

// attribute is a part of a distinguished name. Its value is kept as it is encoded.
type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

type attributeSET []attribute

// javaKeywords are the attributes that Java prints by name. Others are numbers.
var javaKeywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "STREET", "2.5.4.10": "O", "2.5.4.11": "OU",
	"0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}

// javaSubject is a distinguished name as Java prints it.
//
// Source: Java X500Principal.getName, RFC 2253; sun.security.x509.AVA.toRFC2253String.
func javaSubject(raw []byte) string {
	var name []attributeSET
	if _, err := asn1.Unmarshal(raw, &name); err != nil {
		return ""
	}
	slices.Reverse(name)
	var parts []string
	for _, set := range name {
		var together []string
		for _, a := range set {
			together = append(together, javaAttribute(a))
		}
		parts = append(parts, strings.Join(together, "+"))
	}
	return strings.Join(parts, ",")
}

func javaAttribute(a attribute) string {
	keyword, known := javaKeywords[a.Type.String()]
	switch a.Value.Tag {
	case asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String, asn1.TagGeneralString, asn1.TagBMPString:
	default:
		known = false
	}
	if !known {
		return a.Type.String() + "=#" + hex.EncodeToString(a.Value.FullBytes)
	}
	value := string(a.Value.Bytes)
	inner := strings.Trim(value, " ")
	start := strings.Index(value, inner)
	var b strings.Builder
	b.WriteString(keyword + "=")
	for i, r := range value {
		if strings.ContainsRune(`,=+<>#;"\`, r) || r == ' ' && (i < start || i >= start+len(inner)) {
			b.WriteByte('\\')
		}
		if r == 0 {
			b.WriteString(`\00`)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
