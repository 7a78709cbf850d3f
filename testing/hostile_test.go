package zktest_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
	zktest "github.com/paddock-zk/paddock/testing"
)

// Every class of bad frame, before and after the handshake: it ends its
// connection, or is answered, and nobody else notices.
func TestBadFrames(t *testing.T) {
	request := func(op wire.Op, body ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
		b = binary.BigEndian.AppendUint32(b, 1)
		return append(binary.BigEndian.AppendUint32(b, uint32(op)), body...)
	}
	huge := []byte{0x7f, 0xff, 0xff, 0xff}
	frames := map[string][]byte{
		"nothing in it":       {0, 0, 0, 0},
		"half a header":       {0, 0, 0, 4, 0, 0, 0, 1},
		"negative length":     {0xff, 0xff, 0xff, 0xff},
		"huge length":         huge,
		"a byte too long":     {0, 0x10, 0, 0},
		"truncated":           {0, 0, 1, 0, 1, 2, 3},
		"unknown":             request(999),
		"negative operation":  request(-12),
		"nothing behind":      request(wire.OpCreate),
		"huge string":         request(wire.OpGetData, huge...),
		"negative string":     request(wire.OpGetData, 0xff, 0xff, 0xff, 0xf0),
		"huge vector":         request(wire.OpSetWatches, append(make([]byte, 8), huge...)...),
		"huge access list":    request(wire.OpSetACL, append([]byte{0, 0, 0, 1, '/'}, huge...)...),
		"multi without end":   request(wire.OpMulti, 0, 0, 0, 13, 0, 0, 0, 0, 0),
		"multi within multi":  request(wire.OpMulti, 0, 0, 0, 14, 0, 0xff, 0xff, 0xff, 0xff),
		"auth without scheme": request(wire.OpAuth, 0, 0),
	}
	both(t, func(t *testing.T, opts ...zktest.Option) {
		srv := zktest.Start(t, opts...)
		witness := begin(t, srv, 20*time.Second)
		for name, frame := range frames {
			t.Run(name, func(t *testing.T) {
				witness.must(wire.OpGetData, watch("/"), nil)
				for _, c := range []*client{dial(t, srv), begin(t, srv, 10*time.Second)} {
					require.NoError(t, c.nc.SetDeadline(time.Now().Add(10*time.Second)))
					_, err := c.nc.Write(frame)
					require.NoError(t, err)
					if c.session == 0 || name == "truncated" {
						c.nc.Close() // it may wait for more
						continue
					}
					c.write(&wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing})
					_, err = c.read()
					if err != nil {
						require.NotContains(t, err.Error(), "timeout", "neither an answer nor an end")
					}
				}
				witness.must(wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1}, nil)
				require.NotEmpty(t, witness.events)
				witness.events = nil
			})
		}
	})
}

// Clients that announce much, send much or read nothing cost little.
func TestHostileClientsCostLittle(t *testing.T) {
	srv := zktest.Start(t, zktest.WithLimits(zktest.Limits{Unsent: 1 << 20}))
	witness := begin(t, srv, 20*time.Second)
	big := make([]byte, 500_000)
	witness.must(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: big, ACL: open}, nil)
	before := heap()
	var conns []*client
	for range 200 { // a megabyte each, announced and never sent
		c := begin(t, srv, 20*time.Second)
		_, err := c.nc.Write([]byte{0, 0x0f, 0xff, 0xff, 1, 2, 3})
		require.NoError(t, err)
		conns = append(conns, c)
	}
	require.True(t, witness.exists("/"))
	per := (heap() - before) / int64(len(conns))
	t.Logf("%d bytes for a connection that waits for a megabyte", per)
	assert.Less(t, per, int64(200_000))

	deaf := begin(t, srv, 20*time.Second) // asks and never reads
	var flood []byte
	for i := range int32(200) {
		flood = wire.AppendFrame(flood, &wire.RequestHeader{Xid: i, Op: wire.OpGetData}, &wire.PathWatchRequest{Path: "/big"})
	}
	require.NoError(t, deaf.nc.SetDeadline(time.Now().Add(20*time.Second)))
	_, err := deaf.nc.Write(flood)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return fmt.Sprint(sessionsConnected(srv)[deaf.session]) == "" }, 10*time.Second, time.Millisecond, "disconnected")
	require.True(t, witness.exists("/"))
	_, err = io.Copy(io.Discard, deaf.nc)
	_ = err // reset or not, the end has come
	runtime.KeepAlive(conns)
}

// sessionsConnected has each session's remote address.
func sessionsConnected(srv *zktest.Server) map[int64]string {
	m := make(map[int64]string)
	for _, s := range srv.Sessions() {
		m[s.ID] = s.Remote
	}
	return m
}
