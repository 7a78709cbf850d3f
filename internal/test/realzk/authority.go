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

// Authority signs certificates for the loopback address and its name, which last for a day.
type Authority struct{ own tls.Certificate }

// NewAuthority makes one that nobody trusts yet.
func NewAuthority() (*Authority, error) {
	own, err := issue(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return &Authority{own}, err
}

// Issue makes a certificate, for a server or for a client.
func (a *Authority) Issue() (tls.Certificate, error) {
	return issue(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}}, a)
}

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
	template.SerialNumber, template.Subject = big.NewInt(randv2.Int64()), pkix.Name{CommonName: "paddock"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
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
