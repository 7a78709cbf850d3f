package transport

import (
	"bufio"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// It plays a server for which the session is over.
func TestCloseStub(t *testing.T) {
	var l Transport
	f := l.closeStub()
	p := &peer{t: t, Conn: f, in: bufio.NewReader(f)}
	p.send(&wire.ConnectRequest{Timeout: 9000, SessionID: session1, Password: make([]byte, 16)})
	var granted wire.ConnectResponse
	granted.Decode(wire.NewDecoder(p.frame()))
	assert.Positive(t, granted.Timeout)
	assert.NotZero(t, granted.SessionID)
	for i, op := range []struct {
		op   wire.Op
		want wire.Code
	}{
		{wire.OpGetData, wire.CodeSessionExpired},
		{wire.OpSetWatches, wire.CodeSessionExpired},
		{wire.OpPing, wire.CodeOK},
		{wire.OpAuth, wire.CodeOK},
		{wire.OpCloseSession, wire.CodeOK},
	} {
		p.send(&wire.RequestHeader{Xid: int32(i + 1), Op: op.op})
		var h wire.ReplyHeader
		h.Decode(wire.NewDecoder(p.frame()))
		assert.Equal(t, []any{int32(i + 1), op.want}, []any{h.Xid, h.Code}, "operation %d", op.op)
	}

	read := make(chan error, 1)
	go func() {
		_, err := f.Read(make([]byte, 1))
		read <- err
	}()
	require.NoError(t, f.Close())
	assert.ErrorIs(t, <-read, io.ErrClosedPipe)
	require.NoError(t, f.Close(), "a second time")
	l.wg.Wait() // the goroutine behind it has ended
}

// So it is where go-zookeeper closes it before it has read an answer.
func TestCloseStub_Unread(t *testing.T) {
	var l Transport
	f := l.closeStub()
	(&peer{t: t, Conn: f}).send(&wire.ConnectRequest{Password: make([]byte, 16)})
	require.NoError(t, f.Close())
	l.wg.Wait()
	_, err := f.Write([]byte{0})
	assert.ErrorIs(t, err, io.ErrClosedPipe)
}
