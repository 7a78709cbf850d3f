package zktest

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/testing/internal/tree"
)

// versions are what four-letter words say that the server is: the one whose
// behaviour it has.
var versions = map[tree.Release]string{
	tree.Release380: "3.8.0-zktest, built on 2022-02-25 08:49 UTC",
	tree.Release393: "3.9.3-zktest, built on 2024-10-17 23:21 UTC",
	tree.Release396: "3.9.6-zktest, built on 2026-10-16 16:58 UTC",
}

func (m *member) version() string {
	if k := m.e.cfg.keeper; k != nil {
		return "v" + k.version + "-zktest"
	}
	return versions[m.e.cfg.release]
}

// product is how srvr and stat call the server.
func (m *member) product() string {
	if m.e.cfg.keeper != nil {
		return "ClickHouse Keeper"
	}
	return "Zookeeper"
}

// words are the commands that take the place of a first frame. They need no
// session, and the connection ends with the answer.
//
// Source: ZooKeeper org.apache.zookeeper.server.command. What measures time or
// a Java machine is left out or zero.
var words = map[string]func(m *member, b *strings.Builder){
	"conf": (*member).confLocked,
	"cons": (*member).consLocked,
	"crst": (*member).crstLocked,
	"dump": (*member).dumpLocked,
	"envi": (*member).enviLocked,
	"isro": (*member).isroLocked,
	"mntr": (*member).mntrLocked,
	"ruok": func(_ *member, b *strings.Builder) { b.WriteString("imok") },
	"srst": (*member).srstLocked,
	"srvr": (*member).srvrLocked,
	"stat": (*member).statLocked,
	"wchc": (*member).wchcLocked,
	"wchp": (*member).wchpLocked,
	"wchs": (*member).wchsLocked,
}

// Words lists the four-letter words that a server can answer.
func Words() []string { return slices.Sorted(maps.Keys(words)) }

// command answers a four-letter word. It returns false if the connection does
// not begin with one.
func (c *conn) command(r *bufio.Reader) bool {
	head, err := r.Peek(4)
	if err != nil {
		return false
	}
	word := string(head)
	answer, known := words[word]
	if !known {
		return false
	}
	if c.enter() != nil {
		return true
	}
	defer c.m.e.mu.Unlock()
	c.receivedLocked(len(word), "command")
	var b strings.Builder
	switch m := c.m; {
	case !slices.Contains(m.e.cfg.words, word) && m.e.cfg.keeper != nil: // it hangs up
	case !slices.Contains(m.e.cfg.words, word):
		fmt.Fprintf(&b, "%s is not executed because it is not in the whitelist.\n", word)
	case !m.servesLocked() && word != "ruok" && word != "envi" && word != "conf":
		b.WriteString("This ZooKeeper instance is not currently serving requests\n")
	default:
		answer(m, &b)
	}
	c.queue.raw(b.String())
	c.m.sent++
	return true
}

func (m *member) modeLocked() string {
	switch {
	case m.role == roleReadOnly:
		return "read-only"
	case len(m.e.members) == 1:
		return "standalone"
	case m.role == roleLeading:
		return "leader"
	}
	return "follower"
}

func (m *member) confLocked(b *strings.Builder) {
	cfg := &m.e.cfg
	_, port := splitAddr(m.endpoint.addr)
	plain, secure := port, "-1"
	if cfg.tls != nil {
		plain, secure = secure, plain
	}
	fmt.Fprintf(b, "clientPort=%s\nsecureClientPort=%s\ndataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\n", plain, secure)
	perHost := cfg.limits.ConnectionsPerHost
	if perHost == unbounded {
		perHost = 0 // ZooKeeper's word for it; tools read 32 bits
	}
	fmt.Fprintf(b, "tickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\n",
		cfg.tick.Milliseconds(), perHost, cfg.minTimeout.Milliseconds(), cfg.maxTimeout.Milliseconds())
	id := 0
	if len(m.e.members) > 1 {
		id = m.index + 1
	}
	fmt.Fprintf(b, "clientPortListenBacklog=-1\nserverId=%d\n", id)
	if len(m.e.members) > 1 {
		fmt.Fprintf(b, "initLimit=%d\nsyncLimit=%d\nelectionAlg=3\nelectionPort=0\nquorumPort=0\npeerType=0\nmembership: \n%s",
			cfg.syncLimit, cfg.syncLimit, m.e.membership())
	}
}

func (m *member) srvrLocked(b *strings.Builder) {
	fmt.Fprintf(b, "%s version: %s\n", m.product(), m.version())
	m.summaryLocked(b)
}

func (m *member) summaryLocked(b *strings.Builder) {
	if m.role == roleReadOnly {
		b.WriteString("READ-ONLY mode; serving only read-only clients\n")
	}
	fmt.Fprintf(b, "Latency min/avg/max: 0/0.0/0\nReceived: %d\nSent: %d\nConnections: %d\nOutstanding: %d\nZxid: %#x\nMode: %s\nNode count: %d\n",
		m.received, m.sent, len(m.conns), m.outstandingLocked(), m.applied, m.modeLocked(), m.nodeCount())
	if m.modeLocked() == "leader" {
		b.WriteString("Proposal sizes last/min/max: -1/-1/-1\n")
	}
}

// nodeCount counts the root twice, as ZooKeeper does: its table has it as "" and as "/".
func (m *member) nodeCount() int { return m.data.Len() + 1 }

func (m *member) statLocked(b *strings.Builder) {
	fmt.Fprintf(b, "%s version: %s\nClients:\n", m.product(), m.version())
	for _, c := range m.sortedConnsLocked() {
		c.lineLocked(b, false)
	}
	b.WriteString("\n")
	m.summaryLocked(b)
}

func (m *member) consLocked(b *strings.Builder) {
	for _, c := range m.sortedConnsLocked() {
		c.lineLocked(b, true)
	}
	b.WriteString("\n")
}

// lineLocked describes a connection.
//
// Source: ZooKeeper ServerCnxn.dumpConnectionInfo.
func (c *conn) lineLocked(b *strings.Builder, long bool) {
	alive := 0
	if c.session != nil {
		alive = 1
	}
	fmt.Fprintf(b, " /%s[%d](queued=0,recved=%d,sent=%d", c.raw.RemoteAddr(), alive, c.received, c.sent)
	if long && c.session != nil {
		fmt.Fprintf(b, ",sid=%#x,lop=%s,est=%d,to=%d,lcxid=%#x,lzxid=%#x,lresp=%d,llat=0,minlat=0,avglat=0,maxlat=0",
			c.session.id, c.lastOp, c.accepted.UnixMilli(), c.session.timeout.Milliseconds(), uint64(c.lastXid), c.lastZxid,
			c.lastSent.UnixMilli())
	}
	b.WriteString(")\n")
}

func (m *member) dumpLocked(b *strings.Builder) {
	e := m.e
	b.WriteString("SessionTracker dump:\n")
	var ids []int64
	for id := range e.sessions.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if m == e.leader {
		byTick := make(map[int64][]int64)
		for _, id := range ids {
			due := e.sessions.byID[id].due
			byTick[due] = append(byTick[due], id)
		}
		fmt.Fprintf(b, "Session Sets (%d)/(%d):\n", len(byTick), len(ids))
		for _, tick := range slices.Sorted(maps.Keys(byTick)) {
			fmt.Fprintf(b, "%d expire at %s:\n", len(byTick[tick]), e.origin.Add(time.Duration(tick)*e.cfg.expiry).UTC().Format(time.UnixDate))
			for _, id := range byTick[tick] {
				fmt.Fprintf(b, "\t%#x\n", id)
			}
		}
	} else {
		fmt.Fprintf(b, "Global Sessions(%d):\n", len(ids))
		for _, id := range ids {
			fmt.Fprintf(b, "%#x\t%dms\n", id, e.sessions.byID[id].timeout.Milliseconds())
		}
	}
	owners := m.data.Sessions()
	fmt.Fprintf(b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(owners))
	for _, id := range owners {
		fmt.Fprintf(b, "%#x:\n", id)
		for _, path := range m.data.Ephemerals(id) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	conns := m.sortedConnsLocked()
	fmt.Fprintf(b, "Connections dump:\nConnections Sets (1)/(%d):\n", len(conns))
	fmt.Fprintf(b, "%d expire at %s:\n", len(conns), time.Now().UTC().Format(time.UnixDate))
	for _, c := range conns {
		fmt.Fprintf(b, "\tip: /%s sessionId: %#x\n", c.raw.RemoteAddr(), c.sessionID())
	}
}

func (m *member) enviLocked(b *strings.Builder) {
	name, _ := os.Hostname()
	product := "zookeeper"
	if m.e.cfg.keeper != nil {
		product = "clickhouse.keeper"
	}
	fmt.Fprintf(b, "Environment:\n%s.version=%s\nhost.name=%s\nos.name=%s\nos.arch=%s\ngo.version=%s\n",
		product, m.version(), name, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func (m *member) isroLocked(b *strings.Builder) {
	if m.role == roleReadOnly {
		b.WriteString("ro")
		return
	}
	b.WriteString("rw")
}

func (m *member) mntrLocked(b *strings.Builder) {
	line := func(name string, value any) { fmt.Fprintf(b, "zk_%s\t%v\n", name, value) }
	line("version", m.version())
	line("server_state", m.modeLocked())
	line("ephemerals_count", m.data.EphemeralCount())
	line("num_alive_connections", len(m.conns))
	line("avg_latency", "0.0")
	line("outstanding_requests", m.outstandingLocked())
	line("znode_count", m.nodeCount())
	line("global_sessions", len(m.e.sessions.byID))
	line("packets_sent", m.sent)
	line("packets_received", m.received)
	line("connection_drop_probability", "0.0")
	line("watch_count", m.watches.data.n+m.watches.child.n)
	line("min_latency", 0)
	line("max_latency", 0)
	line("approximate_data_size", m.data.Size())
	if open, most, ok := fileDescriptors(); ok {
		line("open_file_descriptor_count", open)
		line("max_file_descriptor_count", most)
	}
	line("local_sessions", 0)
	line("uptime", time.Since(m.since).Milliseconds())
	if m.modeLocked() == "leader" {
		synced := 0
		for _, f := range m.e.members {
			if f.follows(m) {
				synced++
			}
		}
		line("learners", synced)
		line("synced_followers", synced)
		line("synced_observers", 0)
		line("pending_syncs", 0)
		line("quorum_size", len(m.e.members))
		line("peer_state", "leading - broadcast")
	} else if m.modeLocked() == "follower" {
		line("peer_state", "following - broadcast")
	}
}

// fileDescriptors returns how many files the process has open, and how many it may have. It
// knows them on Linux only.
func fileDescriptors() (open int, most int64, ok bool) {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, 0, false
	}
	limits, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(limits)) {
		if rest, found := strings.CutPrefix(line, "Max open files"); found {
			most = math.MaxInt64
			if soft := strings.Fields(rest); len(soft) > 0 && soft[0] != "unlimited" {
				most, err = strconv.ParseInt(soft[0], 10, 64)
			}
			return len(fds), most, err == nil
		}
	}
	return 0, 0, false
}

func (m *member) outstandingLocked() int {
	n := 0
	for c := range m.conns {
		n += c.waiting
	}
	return n
}

func (m *member) crstLocked(b *strings.Builder) {
	for c := range m.conns {
		c.received, c.sent = 0, 0
	}
	b.WriteString("Connection stats reset.\n")
}

func (m *member) srstLocked(b *strings.Builder) {
	m.received, m.sent = 0, 0
	b.WriteString("Server stats reset.\n")
}

// As in ZooKeeper the three that follow know only one of the two tables: not
// what getChildren sets.

func (m *member) wchsLocked(b *strings.Builder) {
	t := &m.watches.data
	fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", len(t.byConn), len(t.byPath), t.n)
}

func (m *member) wchpLocked(b *strings.Builder) {
	for _, path := range slices.Sorted(maps.Keys(m.watches.data.byPath)) {
		fmt.Fprintf(b, "%s\n", path)
		for _, c := range slices.SortedFunc(maps.Keys(m.watches.data.byPath[path]), bySession) {
			fmt.Fprintf(b, "\t%#x\n", c.sessionID())
		}
	}
	b.WriteString("\n")
}

func (m *member) wchcLocked(b *strings.Builder) {
	for _, c := range slices.SortedFunc(maps.Keys(m.watches.data.byConn), bySession) {
		fmt.Fprintf(b, "%#x\n", c.sessionID())
		for _, path := range slices.Sorted(maps.Keys(m.watches.data.byConn[c])) {
			fmt.Fprintf(b, "\t%s\n", path)
		}
	}
	b.WriteString("\n")
}

func bySession(a, b *conn) int { return cmp.Compare(a.sessionID(), b.sessionID()) }

// sessionID is 0 before the handshake.
func (c *conn) sessionID() int64 {
	if c.session == nil {
		return 0
	}
	return c.session.id
}

// shortOps are the names that cons has for requests.
//
// Source: ZooKeeper Request.op2String.
var shortOps = map[wire.Op]string{
	wire.OpNotification: "NOTI", wire.OpCreate: "CREA", wire.OpDelete: "DELE", wire.OpExists: "EXIS", wire.OpGetData: "GETD",
	wire.OpSetData: "SETD", wire.OpGetACL: "GETA", wire.OpSetACL: "SETA", wire.OpGetChildren: "GETC", wire.OpSync: "SYNC",
	wire.OpPing: "PING", wire.OpGetChildren2: "GETC", wire.OpCheck: "CHEC", wire.OpMulti: "MULT", wire.OpCreate2: "CRE2",
	wire.OpReconfig: "RECO", wire.OpCheckWatches: "CHKW", wire.OpRemoveWatches: "REMW", wire.OpCreateContainer: "CRTC",
	wire.OpDeleteContainer: "DELC", wire.OpCreateTTL: "CRTT", wire.OpMultiRead: "MREA", wire.OpAuth: "AUTH",
	wire.OpSetWatches: "SETW", wire.OpSetWatches2: "SEW2", wire.OpSASL: "SASL", wire.OpGetEphemerals: "GETE",
	wire.OpGetAllChildrenNumber: "GACN", wire.OpAddWatch: "ADDW", wire.OpWhoAmI: "WHOA", wire.OpCreateSession: "SESS",
	wire.OpCloseSession: "CLOS",
}
