package zktest

import (
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// Option configures a server. One that is nil is refused.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config is what the options set.
type config struct {
	memory        bool
	listen        string
	tls           *tls.Config
	latency       time.Duration
	tick          time.Duration
	expiry        time.Duration // sessions expire on its multiples
	latePing      time.Duration
	minTimeout    time.Duration
	maxTimeout    time.Duration
	super         string
	saslUsers     map[string]string
	requireSASL   bool
	maxFrame      int
	sweepInterval time.Duration
	syncLimit     int
	electionTime  time.Duration
	readOnly      bool
	limits        Limits
	words         []string
	reconfig      bool
	noTTL         bool
	transcript    bool
	log           bool
	seed          uint64
	release       tree.Release
	badRelease    string
	keeper        *keeper // nil for ZooKeeper
	badKeeper     string
	latencyBy     Distribution
	watchdog      time.Duration
}

// memberAddr is where the i-th member of a cluster listens. It leaves a
// malformed address to net.Listen, which refuses it.
func memberAddr(listen string, i int) string {
	host, port, err := net.SplitHostPort(listen)
	n, err2 := strconv.Atoi(port)
	if err != nil || err2 != nil || n == 0 || i == 0 {
		return listen
	}
	return net.JoinHostPort(host, strconv.Itoa(n+i))
}

// The defaults are those of ZooKeeper.
const (
	defaultTick          = 2 * time.Second
	leastTick            = time.Millisecond // the unit of ZooKeeper's tickTime
	defaultMaxFrame      = 0xfffff
	defaultSweepInterval = time.Minute
	defaultSyncLimit     = 5
	defaultElectionTime  = 350 * time.Millisecond // as measured: three servers on one machine
)

func newConfig(opts []Option) (config, error) {
	c := config{listen: "127.0.0.1:0", tick: defaultTick, maxFrame: defaultMaxFrame, sweepInterval: defaultSweepInterval,
		syncLimit: defaultSyncLimit, electionTime: defaultElectionTime, watchdog: defaultWatchdog}
	for _, o := range opts {
		if o == nil {
			return c, errors.New("zktest: option is nil")
		}
		o.apply(&c)
	}
	if c.keeper != nil {
		c.keeper.setDefaults(&c)
	}
	if c.expiry == 0 {
		c.expiry = c.tick
	}
	if c.words == nil {
		c.words = Words()
	}
	if c.expiry < 0 || c.latePing < 0 {
		return c, fmt.Errorf("zktest: sessions that expire every %v, pings that are %v late", c.expiry, c.latePing)
	}
	if c.tick < leastTick {
		return c, fmt.Errorf("zktest: tick of %v: it must be %v at least", c.tick, leastTick)
	}
	if c.minTimeout == 0 && c.maxTimeout == 0 {
		c.minTimeout, c.maxTimeout = 2*c.tick, 20*c.tick
	}
	c.limits = c.limits.withDefaults()
	switch {
	case !c.memory && inBubble():
		return c, errors.New("zktest: a server over TCP stops the clock of a synctest bubble: add InMemory")
	case c.badRelease != "":
		return c, fmt.Errorf("zktest: version %q, want one of %q or a series of them", c.badRelease, Versions())
	case c.badKeeper != "":
		return c, fmt.Errorf("zktest: Keeper %q, want one of %q", c.badKeeper, KeeperVersions())
	case c.minTimeout <= 0 || c.minTimeout > c.maxTimeout:
		return c, fmt.Errorf("zktest: session timeouts from %v to %v: want the least, above 0, and the most", c.minTimeout, c.maxTimeout)
	case c.maxFrame <= 0:
		return c, fmt.Errorf("zktest: frames of at most %d bytes", c.maxFrame)
	case c.syncLimit < 1:
		return c, fmt.Errorf("zktest: sync limit of %d ticks", c.syncLimit)
	case c.electionTime < 0:
		return c, fmt.Errorf("zktest: election time of %v", c.electionTime)
	case c.sweepInterval < 0:
		return c, fmt.Errorf("zktest: sweep interval of %v", c.sweepInterval)
	case c.tls != nil && len(c.tls.Certificates) == 0 && c.tls.GetCertificate == nil && c.tls.GetConfigForClient == nil:
		return c, errors.New("zktest: TLS: the server has no certificate: set Certificates, as tls.LoadX509KeyPair loads them")
	case c.super != "" && !isDigest(c.super):
		return c, errors.New("zktest: Superuser: want a digest, name:base64(sha1(name:password))")
	case c.requireSASL && len(c.saslUsers) == 0:
		return c, errors.New("zktest: RequireSASL needs SASLUsers")
	case c.watchdog < 0:
		return c, fmt.Errorf("zktest: watchdog of %v", c.watchdog)
	case c.latency < 0:
		return c, fmt.Errorf("zktest: latency of %v", c.latency)
	case (c.latency > 0 || c.latencyBy != nil) && !c.memory:
		return c, errors.New("zktest: latency needs InMemory")
	case c.keeper != nil:
		return c, c.keeper.check(&c)
	}
	return c, nil
}

// inBubble reports whether this is a bubble of testing/synctest.
func inBubble() bool { return ofBubble(time.Now()) }

// ofBubble reports whether a time is by the clock of a bubble, which begins with the year 2000.
func ofBubble(t time.Time) bool { return t.UTC().Year() >= 2000 && t.UTC().Year() < 2020 }

// isDigest reports whether text can be a name and the digest of that name with a password.
func isDigest(text string) bool {
	name, digest, _ := strings.Cut(text, ":")
	sum, err := base64.StdEncoding.DecodeString(digest)
	return name != "" && err == nil && len(sum) == 20 // bytes of SHA-1
}

// InMemory makes a server without sockets, as testing/synctest needs; clients
// connect with Server.DialContext. In a bubble, start the server and its
// clients in the same one. A server without it is refused there.
func InMemory() Option { return optionFunc(func(c *config) { c.memory = true }) }

// Listen chooses the TCP address. Defaults to "127.0.0.1:0": a free port that
// only this machine reaches.
func Listen(addr string) Option { return optionFunc(func(c *config) { c.listen = addr }) }

// TLS makes the server speak TLS with cfg, over TCP as well as in memory. With
// cfg.ClientAuth it verifies clients' certificates, or requires them. Access lists know a
// client by the subject of its verified certificate, in the scheme x509: as Java prints it,
// "CN=orders,O=Example\, Inc.,C=DE". Without a certificate the server does not start.
func TLS(cfg *tls.Config) Option {
	return optionFunc(func(c *config) { c.tls = cmp.Or(cfg, new(tls.Config)) })
}

// Latency is the time that bytes take each way between a client and a server in
// memory. So in virtual time a round trip takes exactly twice that. It needs
// InMemory. Defaults to none.
func Latency(d time.Duration) Option { return optionFunc(func(c *config) { c.latency = d }) }

// LatencyBy adds a random time to Latency, drawn anew for each instant. Bytes still
// arrive in order. It needs InMemory. Seed decides which times are drawn.
//
// Latencies that differ by nanoseconds also make a simulation in virtual time
// repeatable. Without them several things happen at one instant, in an order
// that the scheduler chooses. With them they happen one after the other.
func LatencyBy(d Distribution) Option { return optionFunc(func(c *config) { c.latencyBy = d }) }

// Seed makes a server's random choices repeatable: latencies, and the passwords
// of sessions. By default passwords are random, and the rest has the seed 0.
func Seed(seed uint64) Option { return optionFunc(func(c *config) { c.seed = seed }) }

// Tick is the server's unit of time: sessions expire on its multiples. Defaults
// to 2 seconds. Sessions last 2 to 20 ticks unless SessionTimeouts says otherwise.
func Tick(d time.Duration) Option { return optionFunc(func(c *config) { c.tick = d }) }

// ExpireEvery makes sessions expire on multiples of d. Without it they expire on
// multiples of the tick, since ZooKeeper rounds up to the next tick. With a short
// d, sessions last hardly longer than their timeout.
func ExpireEvery(d time.Duration) Option { return optionFunc(func(c *config) { c.expiry = d }) }

// LatePings delays pings after a Freeze. A leader pings its followers every half
// tick. A leader that was frozen owes them a ping when it goes on, and sends it d
// later than its first answers. A real leader that has much to catch up with may do
// so. Defaults to 0: the ping comes first.
func LatePings(d time.Duration) Option { return optionFunc(func(c *config) { c.latePing = d }) }

// SessionTimeouts bounds the session timeout that a client can have.
func SessionTimeouts(least, most time.Duration) Option {
	return optionFunc(func(c *config) { c.minTimeout, c.maxTimeout = least, most })
}

// Superuser names a user that no access list stops, as
// "super:base64(sha1(super:password))". Clients present "super:password" in the
// scheme digest. Defaults to none.
func Superuser(digest string) Option { return optionFunc(func(c *config) { c.super = digest }) }

// SASLUsers makes the server take DIGEST-MD5 in SASL, from users by name with their
// passwords. Access lists know them in the scheme sasl. A client that proves nothing is let
// in all the same, and one whose proof fails is not. Defaults to none: then the server
// answers as one without SASL.
func SASLUsers(users map[string]string) Option {
	return optionFunc(func(c *config) { c.saslUsers = maps.Clone(users) })
}

// RequireSASL makes the server refuse every request of a client that is none of
// SASLUsers. ZooKeeper calls it sessionRequireClientSASLAuth.
func RequireSASL() Option { return optionFunc(func(c *config) { c.requireSASL = true }) }

// MaxFrame bounds the size of a request in bytes; a larger one ends its
// connection. ZooKeeper calls it jute.maxbuffer. Defaults to 1,048,575.
func MaxFrame(bytes int) Option { return optionFunc(func(c *config) { c.maxFrame = bytes }) }

// SyncLimit says for how many ticks a member of a cluster goes on serving when it
// does not hear the others. Defaults to 5.
func SyncLimit(ticks int) Option { return optionFunc(func(c *config) { c.syncLimit = ticks }) }

// ElectionTime is how long an election takes, and how long a member takes to
// join a leader. Defaults to 350 milliseconds, the time that three real servers
// on one machine need.
func ElectionTime(d time.Duration) Option { return optionFunc(func(c *config) { c.electionTime = d }) }

// ReadOnlyMode lets members of a cluster that see no majority serve clients that
// ask for a read-only session. They begin after two seconds, or a tick if that is
// longer. As in ZooKeeper, such a member does not take over a session that the
// other members know.
func ReadOnlyMode() Option { return optionFunc(func(c *config) { c.readOnly = true }) }

// FourLetterWords are the commands that the server answers, like ZooKeeper's
// 4lw.commands.whitelist; "*" stands for all. Defaults to all of Words. A real
// server answers only srvr by default.
func FourLetterWords(words ...string) Option {
	return optionFunc(func(c *config) {
		c.words = append([]string{}, words...) // not nil, if it is none
		if slices.Contains(words, "*") {
			c.words = Words()
		}
	})
}

// NoTTL makes the server refuse nodes with a time to live. It answers
// "unimplemented", as a real server does without extendedTypesEnabled=true.
func NoTTL() Option { return optionFunc(func(c *config) { c.noTTL = true }) }

// releases are the versions that Version takes, and series of them.
var releases = map[string]tree.Release{
	"3.8": tree.Release380, "3.8.0": tree.Release380,
	"3.9": tree.Release396, "3.9.3": tree.Release393, "3.9.6": tree.Release396,
}

// Versions lists the versions that Version takes, the oldest first.
func Versions() []string { return []string{"3.8.0", "3.9.3", "3.9.6"} }

// Version chooses the ZooKeeper that the server answers as: one of Versions, or
// the newest of these in a series such as "3.9". Defaults to "3.8.0".
func Version(version string) Option {
	return optionFunc(func(c *config) {
		release, ok := releases[version]
		c.release, c.badRelease = release, ""
		if !ok {
			c.badRelease = version
		}
	})
}

// Reconfig makes the server answer reconfig requests as a standalone one with
// reconfigEnabled=true does: "unimplemented". By default it answers "reconfig
// disabled".
func Reconfig() Option { return optionFunc(func(c *config) { c.reconfig = true }) }

// SweepInterval is how often the server removes empty containers and nodes
// whose time to live is over. Defaults to a minute; 0 leaves it to
// Server.SweepContainers.
func SweepInterval(d time.Duration) Option {
	return optionFunc(func(c *config) { c.sweepInterval = d })
}
