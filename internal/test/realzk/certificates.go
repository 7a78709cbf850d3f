//go:build unix

package realzk

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"os"
	"path/filepath"
)

// writePEM writes a certificate as ZooKeeper takes it, behind its key if that is wanted.
func writePEM(file string, cert tls.Certificate, withKey bool) error {
	var text []byte
	if withKey {
		key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			return err
		}
		text = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	}
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})...)
	return os.WriteFile(file, text, 0o600)
}

// secure writes what TLS and SASL need, and puts it into the options.
func (e *Ensemble) secure() error {
	properties, jvm := make(map[string]string), make(map[string]string)
	if e.opts.TLS {
		var err error
		if e.authority, err = NewAuthority(); err != nil {
			return err
		}
		cert, err := e.authority.Issue()
		if err != nil {
			return err
		}
		keys, trusted := filepath.Join(e.dir.path, "keys.pem"), filepath.Join(e.dir.path, "trusted.pem")
		if err := errors.Join(writePEM(keys, cert, true), writePEM(trusted, e.authority.own, false)); err != nil {
			return err
		}
		e.tls = &tls.Config{ServerName: loopback, RootCAs: e.authority.Pool(), Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
		if e.opts.Reconfig {
			properties["client.portUnification"] = "true"
			properties["authProvider.x509"] = "org.apache.zookeeper.server.auth.X509AuthenticationProvider" // only a port of TLS alone brings it along
		}
		properties["serverCnxnFactory"] = "org.apache.zookeeper.server.NettyServerCnxnFactory"
		properties["ssl.keyStore.location"], properties["ssl.keyStore.type"] = keys, "PEM"
		properties["ssl.trustStore.location"], properties["ssl.trustStore.type"] = trusted, "PEM"
	}
	if e.opts.JAAS != "" {
		properties["authProvider.sasl"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
		jvm["java.security.auth.login.config"], jvm["file.encoding"] = jaasFile, "UTF-8"
	}
	maps.Copy(properties, e.opts.Properties)
	maps.Copy(jvm, e.opts.JVMProperties)
	e.opts.Properties, e.opts.JVMProperties = properties, jvm
	return nil
}

// TLS is what a client of servers with Options.TLS needs, nil of others. Its certificate is
// that of the servers, so it does for something that stands in for one as well.
func (e *Ensemble) TLS() *tls.Config { return e.tls.Clone() }

// Authority has signed the certificates of the servers, nil without Options.TLS.
func (e *Ensemble) Authority() *Authority { return e.authority }
