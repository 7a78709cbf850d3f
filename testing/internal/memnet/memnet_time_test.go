package memnet

import (
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func slow(d *time.Duration) func() time.Duration { return func() time.Duration { return *d } }

func TestBytesTakeTheLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := 30 * time.Millisecond
		a, b := Pipe("a", "b", slow(&d), slow(&d))
		begin := time.Now()
		_, err := a.Write([]byte("one"))
		require.NoError(t, err)
		assert.Zero(t, time.Since(begin), "the writer does not wait")
		time.Sleep(10 * time.Millisecond)
		_, err = a.Write([]byte("two"))
		require.NoError(t, err)

		buf := make([]byte, 10)
		n, err := b.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "one", string(buf[:n]))
		assert.Equal(t, 30*time.Millisecond, time.Since(begin))
		n, err = b.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "two", string(buf[:n]))
		assert.Equal(t, 40*time.Millisecond, time.Since(begin))

		require.NoError(t, a.Close())
		_, err = b.Write([]byte("lost"))
		require.NoError(t, err, "b does not know yet")
		_, err = b.Read(buf)
		assert.Equal(t, io.EOF, err)
		assert.Equal(t, 70*time.Millisecond, time.Since(begin))
		_, err = b.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		b.Close()
	})
}

func TestNothingOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := time.Second
		a, b := Pipe("a", "b", slow(&d), slow(&d))
		begin := time.Now()
		_, _ = a.Write([]byte("slow "))
		d = 0
		_, _ = a.Write([]byte("fast"))
		_ = a.Reset()
		got, err := io.ReadAll(b)
		assert.Equal(t, "slow fast", string(got))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		assert.Equal(t, time.Second, time.Since(begin))
		b.Close()
	})
}

func TestDeadlineInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe("a", "b", nil, nil)
		begin := time.Now()
		require.NoError(t, a.SetReadDeadline(begin.Add(time.Minute)))
		go func() {
			time.Sleep(30 * time.Second)
			_ = a.SetReadDeadline(begin.Add(2 * time.Minute)) // while a reads
		}()
		_, err := a.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, 2*time.Minute, time.Since(begin))

		require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Minute)))
		require.NoError(t, a.SetReadDeadline(time.Time{}))
		time.Sleep(time.Hour)
		_, err = b.Write([]byte("x"))
		require.NoError(t, err)
		_, err = a.Read(make([]byte, 1))
		require.NoError(t, err)

		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Minute)))
		n, err := a.Write(make([]byte, maxUnread+1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Equal(t, maxUnread, n)
		a.Close()
		b.Close()
	})
}
