// Command zkserver is the server of package zktest as a program, for tests in
// other languages and for development.
//
//	go run ./testing/cmd/zkserver -listen 127.0.0.1:2181 -tick 2s -control 127.0.0.1:8181
//
// It prints "listening on HOST:PORT" as its first line, serves until it gets
// SIGINT or SIGTERM, keeps everything in memory, and logs to standard error.
// With -control its second line is "control on http://HOST:PORT", and curl
// commands it; GET / lists what there is.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	zktest "github.com/paddock-zk/paddock/testing"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "zkserver:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	listen, control, super, words  string
	version                        string
	members                        int
	tick, minTimeout, maxTimeout   time.Duration
	sweep                          time.Duration
	noTTL, readOnly, reconfig, say bool
	maxFrame                       int
	limits                         zktest.Limits
	cert, key, clientCA            string
	quiet                          bool
}

func parse(args []string, errs io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("zkserver", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		_, _ = fmt.Fprintf(errs, "zkserver %s: a ZooKeeper server in memory, for tests. Flags:\n", builtFrom())
		f.PrintDefaults()
	}
	f.StringVar(&c.listen, "listen", "127.0.0.1:2181", "serve clients on `host:port`; port 0 picks one. A cluster's further members get the ports that follow")
	f.StringVar(&c.control, "control", "", "take commands over HTTP on `host:port`; none by default")
	f.StringVar(&c.version, "version", zktest.Versions()[0], "answer as this ZooKeeper does: one of "+strings.Join(zktest.Versions(), ", ")+", or a `series` of them such as 3.9")
	f.IntVar(&c.members, "members", 1, "run a cluster of `n`")
	f.DurationVar(&c.tick, "tick", 2*time.Second, "the unit of time (tickTime)")
	f.DurationVar(&c.minTimeout, "min-session-timeout", 0, "the least a client gets (minSessionTimeout); 2 ticks by default")
	f.DurationVar(&c.maxTimeout, "max-session-timeout", 0, "the most a client gets (maxSessionTimeout); 20 ticks by default")
	f.DurationVar(&c.sweep, "container-check-interval", time.Minute, "how often empty containers and nodes past their time to live go (znode.container.checkIntervalMs); 0 is never")
	f.BoolVar(&c.noTTL, "no-ttl", false, "refuse nodes with a time to live, as without extendedTypesEnabled")
	f.StringVar(&c.super, "superuser", "", "the superuser's `digest`, super:base64(sha1(super:password)) (DigestAuthenticationProvider.superDigest)")
	f.StringVar(&c.words, "4lw", "*", "four-letter `words` that are answered, separated by commas (4lw.commands.whitelist)")
	f.IntVar(&c.maxFrame, "max-frame", 0xfffff, "the largest request in `bytes` (jute.maxbuffer)")
	f.IntVar(&c.limits.Connections, "max-connections", 0, "how many clients may be connected; 65536 by default, negative for any")
	f.IntVar(&c.limits.ConnectionsPerHost, "max-client-connections", 0, "how many may come from one address (maxClientCnxns); any by default")
	f.IntVar(&c.limits.Watches, "max-watches", 0, "how many watches there may be; 1048576 by default, negative for any")
	f.Int64Var(&c.limits.Data, "max-data", 0, "how many `bytes` all paths and data may have; 1 GiB by default, negative for any")
	f.BoolVar(&c.readOnly, "read-only", false, "let a cluster's minority serve readers (readonlymode.enabled)")
	f.BoolVar(&c.reconfig, "reconfig", false, "answer reconfig as with reconfigEnabled")
	f.StringVar(&c.cert, "tls-cert", "", "speak TLS with the certificate in this PEM `file`")
	f.StringVar(&c.key, "tls-key", "", "its key, a PEM `file`")
	f.StringVar(&c.clientCA, "tls-client-ca", "", "demand client certificates that one in this PEM `file` has signed")
	f.BoolVar(&c.say, "transcript", false, "keep the latest requests and replies, for GET /transcript")
	f.BoolVar(&c.quiet, "quiet", false, "log errors only")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected %q", f.Arg(0))
	}
	return c, nil
}

// builtFrom is the version of this program, which is Paddock's.
func builtFrom() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown version)"
}

func (c config) options() ([]zktest.Option, error) {
	opts := []zktest.Option{
		zktest.Listen(c.listen), zktest.Tick(c.tick), zktest.SweepInterval(c.sweep), zktest.Superuser(c.super),
		zktest.FourLetterWords(strings.Split(c.words, ",")...), zktest.Version(c.version), zktest.MaxFrame(c.maxFrame), zktest.WithLimits(c.limits),
	}
	least, most := c.minTimeout, c.maxTimeout
	if least == 0 {
		least = 2 * c.tick
	}
	if most == 0 {
		most = 20 * c.tick
	}
	opts = append(opts, zktest.SessionTimeouts(least, most))
	for _, o := range []struct {
		set    bool
		option zktest.Option
	}{
		{c.noTTL, zktest.NoTTL()}, {c.readOnly, zktest.ReadOnlyMode()}, {c.reconfig, zktest.Reconfig()}, {c.say, zktest.Transcript()},
	} {
		if o.set {
			opts = append(opts, o.option)
		}
	}
	if c.cert != "" || c.key != "" {
		cfg, err := c.tls()
		if err != nil {
			return nil, err
		}
		opts = append(opts, zktest.TLS(cfg))
	}
	return opts, nil
}

func (c config) tls() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if c.clientCA != "" {
		pem, err := os.ReadFile(c.clientCA)
		if err != nil {
			return nil, err
		}
		cfg.ClientCAs = x509.NewCertPool()
		if !cfg.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", c.clientCA)
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, errs io.Writer) (err error) {
	cfg, err := parse(args, errs)
	if err != nil {
		return err
	}
	opts, err := cfg.options()
	if err != nil {
		return err
	}
	log := newLog(cfg, errs)
	cluster, err := zktest.NewCluster(cfg.members, opts...) //nolint:contextcheck // it lives until Close
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cluster.Close())
		log.Info("closed")
	}()
	if _, err := fmt.Fprintln(out, "listening on", cluster.ConnectString()); err != nil {
		return err
	}
	log.Info("serving", zap.String("connect", cluster.ConnectString()), zap.Duration("tick", cfg.tick))
	if cfg.control == "" {
		<-ctx.Done()
		return nil
	}
	return serveControl(ctx, cfg.control, cluster, out, log)
}

// serveControl serves the control endpoint until ctx ends.
func serveControl(ctx context.Context, addr string, cluster *zktest.Cluster, out io.Writer, log *zap.Logger) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "control on http://%s\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	handler := newControl(cluster, log) //nolint:contextcheck // what a command does outlives its request
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case <-ctx.Done():
		return errors.Join(srv.Close(), ignoreClosed(<-ended))
	case err := <-ended:
		return err
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func newLog(cfg config, w io.Writer) *zap.Logger {
	level := zap.InfoLevel
	if cfg.quiet {
		level = zap.ErrorLevel
	}
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(enc), zapcore.AddSync(w), level))
}
