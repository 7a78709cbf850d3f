package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pipe(t *testing.T) (*Conn, *Conn) {
	t.Helper()
	a, b := Pipe("a", "b", nil, nil)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestBytesArriveInOrder(t *testing.T) {
	a, b := pipe(t)
	for _, s := range []string{"one ", "two ", "three"} {
		n, err := a.Write([]byte(s))
		require.NoError(t, err)
		require.Len(t, s, n)
	}
	buf := make([]byte, 6)
	n, err := b.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, "one tw", string(buf[:n]))
	require.NoError(t, a.Close())
	rest, err := io.ReadAll(b)
	require.NoError(t, err)
	assert.Equal(t, "o three", string(rest))
}

func TestWriterWaitsForReader(t *testing.T) {
	a, b := pipe(t)
	sent := make([]byte, 3*maxUnread+17)
	for i := range sent {
		sent[i] = byte(i * 7)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		n, err := a.Write(sent)
		assert.NoError(t, err)
		assert.Equal(t, len(sent), n)
		a.Close()
	})
	got, err := io.ReadAll(b)
	wg.Wait()
	require.NoError(t, err)
	assert.Equal(t, sent, got)
}

func TestCloseEndsOwnCalls(t *testing.T) {
	a, _ := pipe(t)
	failed := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 1))
		failed <- err
	}()
	require.NoError(t, a.Close())
	require.ErrorIs(t, <-failed, net.ErrClosed)
	_, err := a.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, a.Close(), net.ErrClosed, "the second time")
}

func TestWriteToWhoHasClosed(t *testing.T) {
	a, b := pipe(t)
	require.NoError(t, b.Close())
	_, err := a.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE)
	_, err = a.Read(make([]byte, 1))
	assert.Equal(t, io.EOF, err)
}

func TestCloseFreesWaitingWriter(t *testing.T) {
	a, b := pipe(t)
	failed := make(chan error, 1)
	go func() {
		_, err := a.Write(make([]byte, 2*maxUnread))
		failed <- err
	}()
	one := make([]byte, 1)
	_, err := b.Read(one)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.ErrorIs(t, <-failed, syscall.EPIPE)
}

func TestResetComesBehindTheBytes(t *testing.T) {
	a, b := pipe(t)
	_, err := a.Write([]byte("last words"))
	require.NoError(t, err)
	require.NoError(t, a.Reset())
	got, err := io.ReadAll(b)
	assert.Equal(t, "last words", string(got))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "read mem b->a: read: connection reset by peer", op.Error())
}

func TestDeadlines(t *testing.T) {
	a, b := pipe(t)
	past := time.Now().Add(-time.Second)

	require.NoError(t, a.SetReadDeadline(past))
	_, err := b.Write([]byte("x"))
	require.NoError(t, err)
	_, err = a.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "though there are bytes")
	var timeout net.Error
	require.True(t, errors.As(err, &timeout) && timeout.Timeout())

	require.NoError(t, a.SetReadDeadline(time.Time{}))
	n, err := a.Read(make([]byte, 1))
	require.NoError(t, err)
	assert.Equal(t, 1, n)

	require.NoError(t, a.SetDeadline(past))
	_, err = a.Write([]byte("x"))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, a.SetWriteDeadline(time.Time{}))
	_, err = a.Write([]byte("x"))
	require.NoError(t, err)
}

func TestManyReadersAndWriters(t *testing.T) {
	a, b := pipe(t)
	const writers, each = 8, 1000
	var wg, reading sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 4 {
		reading.Go(func() {
			buf := make([]byte, 100)
			for {
				n, err := b.Read(buf)
				mu.Lock()
				total += n
				mu.Unlock()
				if err != nil {
					assert.Equal(t, io.EOF, err)
					return
				}
			}
		})
	}
	for range writers {
		wg.Go(func() {
			for range each {
				_, err := a.Write([]byte("0123456789"))
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	a.Close()
	reading.Wait()
	assert.Equal(t, writers*each*10, total)
}

func TestAddresses(t *testing.T) {
	a, b := pipe(t)
	assert.Equal(t, "a", a.LocalAddr().String())
	assert.Equal(t, "b", a.RemoteAddr().String())
	assert.Equal(t, b.LocalAddr(), a.RemoteAddr())
	assert.Equal(t, "mem", a.LocalAddr().Network())
}
