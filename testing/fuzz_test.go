package zktest_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// FuzzFrames sends any bytes, before and after the handshake. The server must
// survive them and other clients not notice.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2, 3})
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff})
	f.Add(wire.AppendFrame(nil, &wire.ConnectRequest{Timeout: 4000, Password: make([]byte, 16), HasReadOnly: true}))
	f.Add(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpCreate}, createReq("/x")))
	f.Add(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpMulti}, &wire.MultiRequest{
		Ops: []wire.MultiOp{{Op: wire.OpCreate, Request: createReq("/y")}, {Op: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/y", Version: -1}}},
	}))
	srv, err := zktest.New(zktest.InMemory(), zktest.Transcript())
	require.NoError(f, err)
	f.Cleanup(func() { srv.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		witness := begin(t, srv, 10*time.Second)
		first := dial(t, srv)
		_, _ = first.nc.Write(b)
		second := begin(t, srv, 10*time.Second)
		_, _ = second.nc.Write(b)
		first.nc.Close()
		second.nc.Close()
		require.True(t, witness.exists("/"))
		for _, s := range srv.Sessions() {
			_ = srv.ExpireSession(s.ID)
		}
	})
}

// FuzzRequests sends any body under any type, which gets further than any
// bytes do, to servers of all versions.
func FuzzRequests(f *testing.F) {
	all := samples()
	all[999] = createReq("/x")
	for op, req := range all {
		var e wire.Encoder
		req.Encode(&e)
		f.Add(int32(op), e.B)
		f.Add(int32(op), []byte{0, 0, 0, 2, '/', 'a', 0, 0, 0, 0})
		f.Add(int32(op), []byte{0xff, 0xff, 0xff, 0xff})
	}
	var servers []*zktest.Server
	for _, version := range zktest.Versions() {
		srv, err := zktest.New(zktest.InMemory(), zktest.Transcript(), zktest.Version(version), zktest.Superuser("super:lK75jTNcA+U9vtVEw5vB51mj/w4="))
		require.NoError(f, err)
		f.Cleanup(func() { srv.Close() })
		servers = append(servers, srv)
	}
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		for _, srv := range servers {
			anyRequest(t, srv, op, body)
		}
	})
}

func anyRequest(t *testing.T, srv *zktest.Server, op int32, body []byte) {
	t.Helper()
	witness, c := begin(t, srv, 10*time.Second), begin(t, srv, 10*time.Second)
	c.must(wire.OpGetData, watch("/"), nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	b = binary.BigEndian.AppendUint32(b, 5)
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	_, _ = c.nc.Write(append(b, body...))
	if op != int32(wire.OpCloseSession) {
		c.send(wire.OpPing, wire.Empty{}) // answered behind the request, unless that ends the connection
	}
	for {
		frame, err := c.read()
		if err != nil || len(frame) >= 4 && int32(binary.BigEndian.Uint32(frame)) == wire.XidPing {
			break
		}
	}
	require.True(t, witness.exists("/"))
	for _, s := range srv.Sessions() {
		_ = srv.ExpireSession(s.ID)
	}
}
