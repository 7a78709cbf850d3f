package framework

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/transport"
)

// TLSFiles names PEM files whose contents may change while a client runs. The client looks
// at their times and sizes before each connection, and reads them again if these have
// changed. The connection that it has stays. Files that cannot be read, or do not fit
// together, are logged at warn, and what was read before is used. A pipe or a device is no such
// file. Nothing bounds how long a file is read, so it should not be on a disk of the network.
type TLSFiles struct {
	// CA has the certificates of those who vouch for the servers. "" leaves that to
	// Config.TLS, and so to the machine by default.
	CA string
	// Certificate and Key are what the client shows to servers that ask for it, with the
	// certificates between it and the authority behind it. Both or neither. "" leaves that to
	// Config.TLS.
	Certificate, Key string
}

// tlsFiles is what was read from TLSFiles.
type tlsFiles struct {
	names TLSFiles
	log   *zap.Logger
	read  chan struct{} // holds a token if a certificate was read that warn may not know

	mu     sync.Mutex // guards the fields below
	stamps [3]stamp
	roots  *x509.CertPool
	own    *tls.Certificate
	latest *x509.Certificate // that of the last connection, whether its server asked or not
	failed string            // what was logged last
}

// stamp tells two contents of a file apart.
type stamp struct {
	changed time.Time
	size    int64
}

func (f *tlsFiles) stamp() (stamps [3]stamp, err error) {
	for i, name := range []string{f.names.CA, f.names.Certificate, f.names.Key} {
		if name == "" {
			continue
		}
		info, err := regular(name)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

// regular is what the system knows of a file. It refuses pipes and devices, whose reading may
// never end.
func regular(name string) (os.FileInfo, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file, but %v", name, info.Mode())
	}
	return info, err
}

// readLocked reads the files if they have changed.
func (f *tlsFiles) readLocked() error {
	stamps, err := f.stamp()
	if err != nil || stamps == f.stamps {
		return err
	}
	var roots *x509.CertPool
	if f.names.CA != "" {
		text, err := os.ReadFile(f.names.CA)
		if err != nil {
			return err
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s has no certificate in PEM form", f.names.CA)
		}
	}
	var own *tls.Certificate
	if f.names.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(f.names.Certificate, f.names.Key)
		if err != nil {
			return fmt.Errorf("%s, %s: %w (both must be PEM, and no password may protect the key)", f.names.Certificate, f.names.Key, err)
		}
		own = &pair
	}
	f.stamps, f.roots, f.own = stamps, roots, own
	select {
	case f.read <- struct{}{}:
	default:
	}
	return nil
}

// refreshLocked reads the files if they have changed, and logs once if that fails.
func (f *tlsFiles) refreshLocked() {
	err := f.readLocked()
	switch {
	case err == nil:
		f.failed = ""
	case err.Error() != f.failed:
		f.failed = err.Error()
		f.log.Warn("the files of TLS are not read again: what they had before is used", zap.Error(err))
	}
}

// into puts what the files have into the configuration of a new connection.
func (f *tlsFiles) into(cfg *tls.Config) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refreshLocked()
	if f.roots != nil {
		cfg.RootCAs = f.roots
	}
	if f.own == nil {
		return
	}
	cfg.Certificates, cfg.GetClientCertificate = []tls.Certificate{*f.own}, nil
	if f.latest != nil && !f.latest.Equal(f.own.Leaf) {
		f.log.Info("a new connection has another certificate for servers that ask for one", zap.Stringer("subject", f.own.Leaf.Subject), zap.Time("until", f.own.Leaf.NotAfter))
	}
	f.latest = f.own.Leaf
}

// info is the certificate of the last connection, nil for none.
func (f *tlsFiles) info() *monitor.CertificateInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil {
		return nil
	}
	return &monitor.CertificateInfo{Subject: transport.Subject(f.latest), Until: f.latest.NotAfter}
}

const (
	// lookAtFiles is how often the client looks for another certificate.
	lookAtFiles = time.Hour
	// warnEvery is how often it says that one ends soon.
	warnEvery = 24 * time.Hour
	// A certificate ends soon in the last fifth of its life, and two weeks before the end at
	// most. So one that lives for a day is not said to end soon all its life.
	partEnding = 5
	mostEnding = 14 * 24 * time.Hour
)

// warn logs that the certificate in the files ends soon, until ctx ends.
func (f *tlsFiles) warn(ctx context.Context) {
	var told *x509.Certificate
	var toldAt time.Time
	for {
		f.mu.Lock()
		f.refreshLocked()
		leaf := f.own.Leaf
		f.mu.Unlock()
		next := lookAtFiles
		if left := time.Until(leaf.NotAfter) - min(mostEnding, leaf.NotAfter.Sub(leaf.NotBefore)/partEnding); left > 0 {
			next = min(next, left)
		} else if !leaf.Equal(told) || time.Since(toldAt) >= warnEvery {
			told, toldAt = leaf, time.Now()
			f.log.Warn("the certificate of this client ends soon, or has ended: servers refuse new connections then",
				zap.String("subject", transport.Subject(leaf)), zap.Time("until", leaf.NotAfter), zap.String("file", f.names.Certificate))
		}
		select {
		case <-time.After(next):
		case <-f.read:
		case <-ctx.Done():
			return
		}
	}
}

// fillTLSFiles reads the files for the first time.
func (p *plan) fillTLSFiles() error {
	names := p.TLSFiles
	switch {
	case names == (TLSFiles{}):
		return nil
	case (names.Certificate == "") != (names.Key == ""):
		return errors.New("has a certificate without a key, or a key without a certificate")
	}
	p.files = &tlsFiles{names: names, log: p.Logger, read: make(chan struct{}, 1)}
	if err := p.files.readLocked(); err != nil { // nobody else knows them yet
		return fmt.Errorf("cannot be read: %w", err)
	}
	if p.TLS == nil {
		p.TLS = new(tls.Config)
	}
	return nil
}
