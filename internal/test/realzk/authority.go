package realzk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	randv2 "math/rand/v2"
	"net"
	"time"
)

// Authority signs certificates.
type Authority struct{ own tls.Certificate }

// NewAuthority makes one that nobody trusts yet.
func NewAuthority() (*Authority, error) {
	own, err := issue(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return &Authority{own}, err
}

// Issue makes a certificate for the loopback address and its name, for a server or for a
// client, which lasts for a day.
func (a *Authority) Issue() (tls.Certificate, error) {
	return a.Sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}})
}

// Sign makes a certificate with the names of a template, and with its subject and its times if
// they are set.
func (a *Authority) Sign(template *x509.Certificate) (tls.Certificate, error) {
	return issue(template, a)
}

// Certificate is the authority's own.
func (a *Authority) Certificate() *x509.Certificate { return a.own.Leaf }

// Pool is who trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.own.Leaf)
	return pool
}

// issue completes a certificate, which signs itself without an authority.
func issue(template *x509.Certificate, by *Authority) (cert tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, err
	}
	template.SerialNumber = big.NewInt(randv2.Int64())
	if template.Subject.CommonName == "" {
		template.Subject = pkix.Name{CommonName: "paddock"}
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.own.Leaf, by.own.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return cert, err
	}
	cert.Certificate, cert.PrivateKey = [][]byte{der}, key
	cert.Leaf, err = x509.ParseCertificate(der)
	return cert, err
}
