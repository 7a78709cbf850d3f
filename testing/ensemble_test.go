package zktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// The parts are made for more than one member: what one writes all apply, and
// each fires its own watches.
func TestMembersApplyOneLog(t *testing.T) {
	cfg, err := newConfig([]Option{InMemory()})
	require.NoError(t, err)
	e := newEnsemble(cfg)
	for i := range 3 {
		e.members = append(e.members, newMember(e, i))
	}
	e.leader = e.members[0]
	for _, m := range e.members {
		require.NoError(t, m.open())
		defer func() { require.NoError(t, m.shut()) }()
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.pauseLocked()
	}()

	a, b := join(t, e.members[1]), join(t, e.members[2])
	b.send(t, wire.OpExists, &wire.PathWatchRequest{Path: "/x", Watch: true})
	h := b.receive(t)
	assert.Equal(t, wire.CodeNoNode, h.Code)
	a.send(t, wire.OpCreate, &wire.CreateRequest{Path: "/x", ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}})
	h = a.receive(t)
	assert.Equal(t, wire.CodeOK, h.Code)
	assert.EqualValues(t, 3, h.Zxid, "two sessions came first")
	h = b.receive(t)
	assert.Equal(t, wire.XidNotification, h.Xid)

	var dumps [3]bytes.Buffer
	for i, m := range e.members {
		require.NoError(t, (&Server{e: e, m: m}).Dump(&dumps[i]))
		assert.Equal(t, dumps[0].String(), dumps[i].String())
		assert.EqualValues(t, 3, m.applied)
	}
	s := &Server{e: e, m: e.members[1]}
	assert.Equal(t, []int{1, 2}, []int{s.Sessions()[0].Member, s.Sessions()[1].Member})
}

type peer struct {
	nc net.Conn
	r  *bufio.Reader
}

func join(t *testing.T, m *member) *peer {
	t.Helper()
	nc, err := m.e.dial(context.Background(), m.endpoint.addr)
	require.NoError(t, err)
	p := &peer{nc, bufio.NewReader(nc)}
	_, err = nc.Write(wire.AppendFrame(nil, &wire.ConnectRequest{Timeout: 10000, Password: make([]byte, 16)}))
	require.NoError(t, err)
	p.frame(t)
	return p
}

func (p *peer) send(t *testing.T, op wire.Op, req wire.Record) {
	t.Helper()
	_, err := p.nc.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: op}, req))
	require.NoError(t, err)
}

func (p *peer) frame(t *testing.T) []byte {
	t.Helper()
	var head [4]byte
	_, err := io.ReadFull(p.r, head[:])
	require.NoError(t, err)
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err = io.ReadFull(p.r, b)
	require.NoError(t, err)
	return b
}

func (p *peer) receive(t *testing.T) (h wire.ReplyHeader) {
	t.Helper()
	d := wire.NewDecoder(p.frame(t))
	h.Decode(d)
	require.NoError(t, d.Err())
	return h
}
