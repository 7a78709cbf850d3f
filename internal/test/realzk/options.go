//go:build unix

package realzk

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options describes servers to start. The zero value is one standalone server.
type Options struct {
	// Servers is 1 for a standalone server, or the size of an ensemble: 3 or
	// 5. Defaults to 1.
	Servers int

	// Observers is how many of the Servers, the last ones, follow without a vote.
	Observers int

	// Tick is ZooKeeper's unit of time, in whole milliseconds. Sessions last
	// 2 to 20 ticks unless the next fields say otherwise. Defaults to 500 ms.
	Tick time.Duration

	// MinSessionTimeout and MaxSessionTimeout bound what a client may ask for.
	// They default to 2 and 20 ticks. Half a tick is how often the leader
	// hears of a follower's sessions.
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration

	// InitLimit is how many ticks a member may take to join its leader.
	// Defaults to as many as there are in 10 seconds, and at least 10.
	InitLimit int

	// SyncLimit is how many ticks a follower that no longer hears its leader
	// goes on serving clients. Defaults to 5 with Partitions, and without to as
	// many as there are in 10 seconds: a busy machine cuts nobody off.
	SyncLimit int

	// ReadOnlyMode lets a member without a majority serve clients that accept
	// to only read.
	ReadOnlyMode bool

	// SuperPassword enables the user "super" of the digest scheme, who passes
	// every access list, and is that user's password. Defaults to no such user.
	SuperPassword string

	// TLS has each member serve clients by TLS, and ask them for a certificate.
	// Ensemble.TLS is what a client needs.
	TLS bool

	// Reconfig lets clients change which members there are, and has the ensemble's
	// configuration say where clients connect. That is one port for TLS and plain text, as the
	// configuration has no place for a port of TLS alone.
	Reconfig bool

	// JAAS is a file of that name, whose section Server turns SASL on: DigestUsers, or one of
	// Kerberos. Each member has its own, with the number of its server id in place of {id}.
	JAAS string

	// Partitions puts forwarders between the members, which Partition needs.
	Partitions bool

	// Suite chooses the ZooKeeper of a Debian suite, such as "trixie", which
	// Fetch must have fetched. Defaults to the variable ZK_SUITE, and without
	// that to the ZooKeeper that Find finds.
	Suite string

	// Dir is where the folder with data and logs is made. Defaults to
	// memory-backed /dev/shm, or else to os.TempDir.
	Dir string

	// Properties are further lines of zoo.cfg, and replace ours.
	Properties map[string]string

	// JVMProperties are system properties of the servers, and replace ours.
	JVMProperties map[string]string

	// JVMArgs come last among the arguments to java. Ours keep a server that
	// does little work small and quick to start; for measuring throughput
	// give "-Xmx512m", "-XX:TieredStopAtLevel=4".
	JVMArgs []string

	// findPorts replaces the choice of ports in tests of this package.
	findPorts func(members int) (*portBlock, error)
}

const (
	defaultTick    = 500 * time.Millisecond
	defaultJoin    = 10 * time.Second
	defaultTicks   = 10 // the least InitLimit by default
	defaultSync    = 5
	largestServers = 5
)

func (o Options) withDefaults() (Options, error) {
	if o.Servers == 0 {
		o.Servers = 1
	}
	if o.Servers < 0 || o.Servers > largestServers || o.Servers%2 == 0 {
		return o, fmt.Errorf("realzk: Servers is %d, want 1, 3 or 5", o.Servers)
	}
	if o.Observers < 0 || o.Observers >= o.Servers {
		return o, fmt.Errorf("realzk: Observers is %d of %d servers, want some that vote", o.Observers, o.Servers)
	}
	if o.Tick == 0 {
		o.Tick = defaultTick
	}
	for _, field := range []struct {
		name  string
		value time.Duration
	}{
		{"Tick", o.Tick}, {"MinSessionTimeout", o.MinSessionTimeout}, {"MaxSessionTimeout", o.MaxSessionTimeout},
	} {
		if field.value < 0 || field.value%time.Millisecond != 0 {
			return o, fmt.Errorf("realzk: %s is %v, want whole milliseconds", field.name, field.value)
		}
	}
	patient := max(defaultTicks, int(defaultJoin/o.Tick))
	if o.InitLimit == 0 {
		o.InitLimit = patient
	}
	if o.SyncLimit == 0 {
		o.SyncLimit = patient
		if o.Partitions {
			o.SyncLimit = defaultSync
		}
	}
	if o.InitLimit < 0 || o.SyncLimit < 0 {
		return o, fmt.Errorf("realzk: InitLimit is %d and SyncLimit %d, want positive numbers", o.InitLimit, o.SyncLimit)
	}
	if o.Partitions && o.Servers == 1 {
		return o, fmt.Errorf("realzk: Partitions is set for a standalone server")
	}
	if o.findPorts == nil {
		o.findPorts = findPorts
	}
	o.Properties, o.JVMProperties = maps.Clone(o.Properties), maps.Clone(o.JVMProperties)
	o.JVMArgs = slices.Clone(o.JVMArgs)
	return o, nil
}

// endpoints are the addresses of one member as another one sees it.
type endpoints struct {
	quorum   string // where a leader listens for followers
	election string
	client   int
}

// config returns member i's zoo.cfg. peers is indexed by member and holds
// member i's own addresses as well; it is not used for a standalone server.
func (o Options) config(dataDir string, own memberPorts, peers []endpoints) string {
	p := map[string]string{
		"tickTime":           millis(o.Tick),
		"dataDir":            dataDir,
		"clientPort":         fmt.Sprint(own.client),
		"clientPortAddress":  loopback,
		"admin.enableServer": "false",
		// Each test connects as often as it likes, from one address.
		"maxClientCnxns":         "0",
		"4lw.commands.whitelist": "*",
	}
	if o.hasSecurePort() {
		p["secureClientPort"], p["secureClientPortAddress"] = fmt.Sprint(own.secure), loopback
	}
	if o.Reconfig {
		p["reconfigEnabled"], p["standaloneEnabled"] = "true", "false"
	}
	if o.MinSessionTimeout > 0 {
		p["minSessionTimeout"] = millis(o.MinSessionTimeout)
	}
	if o.MaxSessionTimeout > 0 {
		p["maxSessionTimeout"] = millis(o.MaxSessionTimeout)
	}
	if o.Servers > 1 {
		p["initLimit"] = fmt.Sprint(o.InitLimit)
		p["syncLimit"] = fmt.Sprint(o.SyncLimit)
		for j, peer := range peers {
			_, electionPort, _ := strings.Cut(peer.election, ":")
			server := peer.quorum + ":" + electionPort
			if j >= o.Servers-o.Observers {
				server += ":observer"
				if peer.client == own.client {
					p["peerType"] = "observer"
				}
			}
			if o.Reconfig {
				server += fmt.Sprint(";", loopback, ":", peer.client)
			}
			p[fmt.Sprintf("server.%d", j+1)] = server
		}
	}
	maps.Copy(p, o.Properties)
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", key, p[key])
	}
	return b.String()
}

// hasSecurePort is whether TLS has a port of its own.
func (o Options) hasSecurePort() bool { return o.TLS && !o.Reconfig }

// DigestUsers is the JAAS file of servers that know users of DIGEST-MD5 by their passwords.
func DigestUsers(users map[string]string) string {
	var b strings.Builder
	b.WriteString("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required")
	for _, user := range slices.Sorted(maps.Keys(users)) {
		fmt.Fprintf(&b, "\n  user_%s=%q", user, users[user])
	}
	b.WriteString(";\n};\n")
	return b.String()
}

// javaArgs returns the arguments to java for a server with the given zoo.cfg.
func (o Options) javaArgs(classPath, config string) []string {
	p := map[string]string{
		// A reply need not survive a power cut here, and an fsync would cost
		// more than all else a request does.
		"zookeeper.forceSync":                     "no",
		"java.net.preferIPv4Stack":                "true",
		"org.slf4j.simpleLogger.showDateTime":     "true",
		"org.slf4j.simpleLogger.dateTimeFormat":   "HH:mm:ss.SSS",
		"org.slf4j.simpleLogger.showShortLogName": "true",
	}
	if o.ReadOnlyMode {
		p["readonlymode.enabled"] = "true"
	}
	if o.SuperPassword != "" {
		p["zookeeper.DigestAuthenticationProvider.superDigest"] = digest("super", o.SuperPassword)
	}
	maps.Copy(p, o.JVMProperties)
	args := []string{
		"-Xms16m", "-Xmx128m", "-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1", // compile quickly rather than well
		"-XX:-UsePerfData",        // whose file outlives a killed process
		"-XX:+ExitOnOutOfMemoryError",
	}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		args = append(args, "-D"+key+"="+p[key])
	}
	args = append(args, o.JVMArgs...)
	return append(args, "-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
}

// digest is what a server keeps of a user's password.
//
// Source: DigestAuthenticationProvider.generateDigest.
func digest(user, password string) string {
	sum := sha1.Sum([]byte(user + ":" + password))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

func millis(d time.Duration) string {
	return fmt.Sprint(d.Milliseconds())
}
