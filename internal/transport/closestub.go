package transport

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/paddock-zk/paddock/internal/wire"
)

// closeStub is the connection that go-zookeeper gets when the transport closes. Behind it
// a goroutine plays a server, until go-zookeeper closes it.
//
// Our own requests have closed the session by then, or could not. Left alone,
// go-zookeeper's Close waits a second for an answer whenever no server is there.
func (l *Transport) closeStub() net.Conn {
	lib, server := net.Pipe()
	l.wg.Go(func() { playClosed(server) })
	return lib
}

// playClosed is a server that grants the session asked for, takes the request to close it,
// and says that the session is over to everything else.
func playClosed(nc net.Conn) {
	answer := wire.AppendFrame(nil, &wire.ConnectResponse{Timeout: 60_000, SessionID: 1, Password: make([]byte, 16)})
	for {
		var size [4]byte
		_, err := io.ReadFull(nc, size[:])
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if err == nil {
			_, err = io.ReadFull(nc, frame)
		}
		if err != nil {
			return // closed
		}
		if answer == nil {
			var asked wire.RequestHeader
			asked.Decode(wire.NewDecoder(frame))
			h := &wire.ReplyHeader{Xid: asked.Xid, Code: wire.CodeSessionExpired}
			if asked.Op == wire.OpCloseSession || asked.Op == wire.OpPing || asked.Op == wire.OpAuth {
				h.Code = wire.CodeOK
			}
			answer = wire.AppendFrame(nil, h)
		}
		_, _ = nc.Write(answer) // if it is closed, the next Read tells
		answer = nil
	}
}
