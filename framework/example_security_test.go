package framework_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/paddock-zk/paddock/framework"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Connections are encrypted, and only clients with the password can use the nodes.
func ExampleConfig_security() {
	certificate, pool := selfSigned()
	srv, err := zktest.New(zktest.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}}))
	if err != nil {
		panic(err)
	}
	defer srv.Close()

	ctx := context.Background()
	mine := []framework.ACL{framework.AuthACL(framework.PermAll)} // for the identities of Auth
	cfg := framework.Config{
		ConnectString: srv.ConnectString(),
		TLS:           &tls.Config{RootCAs: pool}, // host names are verified as written in ConnectString
		Auth:          []framework.Auth{framework.DigestAuth("orders", "secret")},
		ACL:           func(string) []framework.ACL { return mine },
	}
	ours, err := framework.Connect(ctx, cfg)
	if err != nil {
		panic(err)
	}
	defer ours.Close()
	if _, err := ours.Create(ctx, "/orders", []byte("42"), framework.Persistent); err != nil {
		panic(err)
	}

	cfg.Auth = nil
	stranger, err := framework.Connect(ctx, cfg)
	if err != nil {
		panic(err)
	}
	defer stranger.Close()
	_, _, err = stranger.Get(ctx, "/orders")
	fmt.Println(errors.Is(err, framework.ErrNoAuth), err)
	// Output: true get /orders: zk: not authenticated: READ on /orders is needed (credentials given: none)
}

// Certificates that change are read again. A client that runs for months needs no restart.
func ExampleTLSFiles() {
	client, err := framework.Start(framework.Config{
		ConnectString: "zk1:2281,zk2:2281,zk3:2281",
		TLSFiles: framework.TLSFiles{
			CA:          "/etc/orders/tls/ca.crt",
			Certificate: "/etc/orders/tls/tls.crt",
			Key:         "/etc/orders/tls/tls.key",
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	// Output: config: TLSFiles cannot be read: stat /etc/orders/tls/ca.crt: no such file or directory
}

// selfSigned is a certificate for this machine, and who vouches for it.
func selfSigned() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
