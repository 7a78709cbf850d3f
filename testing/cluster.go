package zktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cluster is an ensemble of n members, as clients can observe one. The methods
// that it has from Server act on all members, or on the state that they share.
// Those of Member act on one. Methods that take a member, from 0, panic if there is no such one.
type Cluster struct {
	Server
	each []*Server
}

// StartCluster runs a cluster of n members until the test ends, as Start does a server.
func StartCluster(t TB, n int, opts ...Option) *Cluster {
	t.Helper()
	c, err := NewCluster(n, opts...)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	c.begin(t)
	for _, s := range c.each {
		s.tb = t
	}
	return c
}

// NewCluster is StartCluster for programs and TestMain. The caller has to Close
// the cluster. The members have elected a leader when it returns. If Listen
// names a port, member 0 gets it, and the others get the ports that follow.
func NewCluster(n int, opts ...Option) (*Cluster, error) {
	if n < 1 {
		return nil, fmt.Errorf("zktest: cluster of %d: it must have 1 member at least", n)
	}
	s, err := newServer(n, opts)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Server: Server{e: s.e, members: s.members}}
	for _, m := range s.members {
		c.each = append(c.each, &Server{e: s.e, members: []*member{m}})
	}
	return c, nil
}

// Size is the number of members.
func (c *Cluster) Size() int { return len(c.each) }

// Member is the i-th member, from 0, so that a test can stop, freeze or look at
// it alone. Closing it closes the cluster.
func (c *Cluster) Member(i int) *Server {
	c.require(i)
	return c.each[i]
}

// require panics if one of the members is not there: a test that counts from 1 would
// separate others than it means.
func (c *Cluster) require(members ...int) {
	for _, i := range members {
		if i < 0 || i >= len(c.each) {
			panic(fmt.Sprintf("zktest: no member %d: a cluster of %d has the members 0 to %d", i, len(c.each), len(c.each)-1))
		}
	}
}

// Leader is the index of the leader that a majority follows, -1 without one.
func (c *Cluster) Leader() int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if !c.e.canCommitLocked(c.e.leader) {
		return -1
	}
	return c.e.leader.index
}

// MemberOf is the index of the member that a session is connected to, -1 if
// there is none.
func (c *Cluster) MemberOf(session int64) int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if s := c.e.sessions.byID[session]; s != nil && s.conn != nil {
		return s.conn.m.index
	}
	return -1
}

// Partition lets members speak only within their group, until Heal. A member
// that is in no group is alone. Messages between groups wait, as in a network
// that loses packets, so no member notices at once. Clients are not affected.
func (c *Cluster) Partition(groups ...[]int) {
	c.require(slices.Concat(groups...)...)
	c.setCut(func(from, to int) bool {
		return !slices.ContainsFunc(groups, func(g []int) bool { return slices.Contains(g, from) && slices.Contains(g, to) })
	})
}

// PartitionOneWay holds back the messages of the member from to the member to,
// until Heal. The other way stays open.
func (c *Cluster) PartitionOneWay(from, to int) {
	c.require(from, to)
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.cut[from][to] = true
	c.e.changedLocked()
}

// Heal ends all partitions.
func (c *Cluster) Heal() { c.setCut(func(int, int) bool { return false }) }

func (c *Cluster) setCut(cut func(from, to int) bool) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	for from := range c.e.cut {
		for to := range c.e.cut[from] {
			c.e.cut[from][to] = from != to && cut(from, to)
		}
	}
	c.e.changedLocked()
}

// Lag delays the leader's messages to a follower by d. So the follower's reads
// are out of date until a sync, and it answers its clients' writes later. Lag
// stays in force when the leader changes; 0 ends it.
func (c *Cluster) Lag(i int, d time.Duration) {
	c.require(i)
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.members[i].lag = d
}

// Elect moves the leadership to a member. All clients are disconnected, and no
// member serves until the election is over. If the member cannot win, another
// one does.
func (c *Cluster) Elect(i int) {
	c.require(i)
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.prefer = c.e.members[i]
	if c.e.leader != nil {
		c.e.leader.lookLocked()
	}
}

// WaitLeader returns when a leader has a majority, or with an error that wraps
// ctx's cause.
func (c *Cluster) WaitLeader(ctx context.Context) error {
	return c.e.wait(ctx, func() bool { return c.e.canCommitLocked(c.e.leader) }, c.rolesLocked)
}

// WaitServing returns when all members that are not stopped follow a leader or
// lead, or with an error that wraps ctx's cause.
func (c *Cluster) WaitServing(ctx context.Context) error {
	return c.e.wait(ctx, func() bool {
		return c.e.canCommitLocked(c.e.leader) && !slices.ContainsFunc(c.e.members, func(m *member) bool {
			return !m.down && m != c.e.leader && !m.follows(c.e.leader)
		})
	}, c.rolesLocked)
}

// rolesLocked says what each member is.
func (c *Cluster) rolesLocked() string {
	roles := make([]string, len(c.e.members))
	for i, m := range c.e.members {
		switch {
		case m.down:
			roles[i] = "stopped"
		case m == c.e.leader && c.e.canCommitLocked(m):
			roles[i] = "leads"
		case m == c.e.leader:
			roles[i] = "leads without a majority"
		case m.follows(c.e.leader):
			roles[i] = "follows"
		default:
			roles[i] = "alone"
		}
		roles[i] = fmt.Sprintf("member %d: %s", i, roles[i])
	}
	return strings.Join(roles, ", ")
}
