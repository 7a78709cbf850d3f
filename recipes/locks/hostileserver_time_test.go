package locks_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/internal/wire"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// tampering is what happens to the frames from the servers, in the order in which they
// come. A byte says what to do, and those behind it with what. Once they are used up the
// servers are as they are.
type tampering struct {
	mu     sync.Mutex // guards the fields below
	script []byte
	frames int
}

// The things that can be done to a frame, by the remainder of a byte by 16. All
// others leave it alone.
const (
	tamperDrop      = 6 + iota
	tamperDuplicate // it comes twice
	tamperXid       // 4 bytes: another request's
	tamperZxid      // 8 bytes
	tamperCode      // 2 bytes, signed
	tamperCut       // 1 byte: so many bytes are left, and its length says so
	tamperLength    // 4 bytes: of the length before it, and no more
	tamperByte      // 2 bytes: where, and what is changed there
	tamperHold      // it comes behind the next one
	tamperEvent     // 1 byte: an event comes before it
)

func (t *tampering) take(n int) []byte {
	b := make([]byte, n)
	t.script = t.script[copy(b, t.script):]
	return b
}

// begin does something to the frames that come from now on.
func (t *tampering) begin(script []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.script = script
}

// end leaves everything alone from now on, and returns how many frames came by.
func (t *tampering) end() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.script = nil
	return t.frames
}

// through is a dialer that tampers.
func (t *tampering) through(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &tampered{Conn: nc, by: t}, nil
	}
}

// tampered is a connection to a server that is not what it seems.
type tampered struct {
	net.Conn
	by   *tampering
	out  []byte
	held []byte
}

func (c *tampered) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		var size [4]byte
		if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		c.out = c.tamper(body)
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// tamper returns what comes in place of a frame.
func (c *tampered) tamper(body []byte) []byte {
	t := c.by
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frames++
	before := c.held
	c.held = nil
	if len(t.script) == 0 {
		return append(framed(body), before...)
	}
	put := func(at int, b []byte) {
		if at+len(b) <= len(body) {
			copy(body[at:], b)
		}
	}
	var out []byte
	switch what := t.take(1)[0] % 16; what {
	case tamperDrop:
	case tamperDuplicate:
		out = append(framed(body), framed(body)...)
	case tamperXid:
		put(0, t.take(4))
		out = framed(body)
	case tamperZxid:
		put(4, t.take(8))
		out = framed(body)
	case tamperCode:
		code := t.take(2)
		fill := byte(0)
		if code[0] >= 0x80 {
			fill = 0xff
		}
		put(12, []byte{fill, fill, code[0], code[1]})
		out = framed(body)
	case tamperCut:
		out = framed(body[:min(len(body), int(t.take(1)[0]))])
	case tamperLength:
		out = framed(body)
		copy(out, t.take(4))
	case tamperByte:
		b := t.take(2)
		if len(body) > 0 {
			body[int(b[0])%len(body)] ^= b[1]
		}
		out = framed(body)
	case tamperHold:
		c.held = framed(body)
	case tamperEvent:
		typ := wire.EventType(int8(t.take(1)[0]))
		out = wire.AppendFrame(nil, &wire.ReplyHeader{Xid: wire.XidNotification}, &wire.WatcherEvent{Type: typ, State: 3, Path: "/l"})
		out = append(out, framed(body)...)
	default:
		out = framed(body)
	}
	return append(out, before...)
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// useAll does a bit of everything, each for a second at most. After such answers anything
// may be true. So the test only asks that the result makes sense.
func useAll(t *testing.T, c *framework.Client) {
	t.Helper()
	step := func(fn func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := fn(ctx); err != nil {
			assert.NotEmpty(t, err.Error())
			assert.False(t, framework.Retryable(err) && framework.Ambiguous(err))
		}
	}
	step(func(ctx context.Context) error {
		_, err := c.Create(ctx, "/a", []byte("data"), framework.Persistent, framework.Idempotent())
		return err
	})
	step(func(ctx context.Context) error { _, _, err := c.Get(ctx, "/a"); return err })
	step(func(ctx context.Context) error {
		_, _, w, err := c.ChildrenW(ctx, "/")
		if err == nil {
			w.Stop()
		}
		return err
	})
	step(func(ctx context.Context) error {
		tx := c.Transaction()
		tx.Set("/a", nil, framework.AnyVersion)
		tx.Create("/a/b", nil, framework.EphemeralSequential)
		_, err := tx.Commit(ctx)
		return err
	})
	for _, lock := range []locks.Lock{
		locks.NewInterProcessMutex(c, "/l"), locks.NewInterProcessReadWriteLock(c, "/rw").ReadLock(), locks.NewInterProcessSemaphore(c, "/s", 2),
		locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/m/a"), locks.NewInterProcessMutex(c, "/m/b")),
	} {
		step(func(ctx context.Context) error {
			return locks.Do(ctx, lock, func(ctx context.Context) error {
				t := time.NewTimer(200 * time.Millisecond) // long enough for a watch
				defer t.Stop()
				select {
				case <-ctx.Done():
				case <-t.C:
				}
				return context.Cause(ctx)
			})
		})
	}
}

// withHostile has a client live through a script, and be as good as new with
// servers that are as they should be.
func withHostile(t *testing.T, script []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, zktest.InMemory())
		by := &tampering{script: script}
		c, err := framework.Start(framework.Config{
			ConnectString: srv.ConnectString(), DialContext: by.through(srv.DialContext), SessionTimeout: 10 * time.Second, MaxReply: 64 << 10,
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_ = c.BlockUntilConnected(ctx)
		cancel()
		for range 3 {
			useAll(t, c)
		}
		by.end()
		srv.DisconnectAll()
		// A session may have been told to last for an hour, and its client that the
		// servers have been far ahead of what they are.
		fine, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		for i := 0; ; i++ {
			// Another path is free, whatever the client took for true of this one.
			err := locks.Do(fine, locks.NewInterProcessMutex(c, fmt.Sprintf("/fine%d", i)), func(context.Context) error { return nil })
			if err == nil {
				break
			}
			require.NoError(t, fine.Err(), "%v", err)
		}
		if err := c.Close(); err != nil {
			require.ErrorContains(t, err, "not closed")
		}
	})
}

// Each bad answer alone, at each of the first frames.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	answers := map[string][]byte{
		"dropped":               {tamperDrop},
		"twice":                 {tamperDuplicate},
		"of another request":    {tamperXid, 0, 0, 0, 77},
		"of a request of ours":  {tamperXid, 0x40, 0, 0, 1},
		"of no request":         {tamperXid, 0x80, 0, 0, 0},
		"as an event":           {tamperXid, 0xff, 0xff, 0xff, 0xff},
		"as a ping":             {tamperXid, 0xff, 0xff, 0xff, 0xfe},
		"as credentials":        {tamperXid, 0xff, 0xff, 0xff, 0xfc},
		"zxid going back":       {tamperZxid, 0, 0, 0, 0, 0, 0, 0, 1},
		"zxid of zero":          {tamperZxid, 0, 0, 0, 0, 0, 0, 0, 0},
		"negative zxid":         {tamperZxid, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"zxid far ahead":        {tamperZxid, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"unknown code":          {tamperCode, 0xf0, 0x01},
		"positive code":         {tamperCode, 0x00, 0x07},
		"session expired":       {tamperCode, 0xff, 0x90},
		"no node":               {tamperCode, 0xff, 0x9b},
		"no body":               {tamperCut, 16},
		"half a body":           {tamperCut, 27},
		"half a header":         {tamperCut, 9},
		"nothing":               {tamperCut, 0},
		"length of zero":        {tamperLength, 0, 0, 0, 0},
		"negative length":       {tamperLength, 0xff, 0xff, 0xff, 0xff},
		"enormous length":       {tamperLength, 0x7f, 0xff, 0xff, 0xff},
		"length of a gigabyte":  {tamperLength, 0x40, 0, 0, 0},
		"length beyond a reply": {tamperLength, 0, 0x10, 0, 0},
		"length a bit too long": {tamperLength, 0, 0, 0, 200},
		"negative count":        {tamperByte, 16, 0x80},
		"enormous count":        {tamperByte, 17, 0x7f},
		"a short name":          {tamperByte, 19, 0x30},
		"another name":          {tamperByte, 27, 1},
		"another name of several": {
			tamperByte, 36, 1,
		},
		"out of order":     {tamperHold},
		"event of no type": {tamperEvent, 99},
		"event nobody waits for": {
			tamperEvent, byte(wire.EventNodeDeleted),
		},
		"event that ends watches": {tamperEvent, 0xff},
	}
	for name, answer := range answers {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			for at := range kit.Moments(t, 24, *everySweep) {
				withHostile(t, append(make([]byte, at), answer...))
				if t.Failed() {
					t.Fatalf("at frame %d", at)
				}
			}
		})
	}
}

// What a server calls something else than was asked for is found by its
// identifier, as it is when the reply is lost.
func TestNodesOfOtherNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lock   func(*framework.Client) locks.Lock
		answer []byte
	}{
		"mutex": {func(c *framework.Client) locks.Lock { return locks.NewInterProcessMutex(c, "/l") }, []byte{tamperByte, 27, 1}},
		"MultiLock": {func(c *framework.Client) locks.Lock {
			return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(c, "/l"), locks.NewInterProcessMutex(c, "/m"))
		}, []byte{tamperByte, 36, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, zktest.InMemory())
				by := new(tampering)
				c, err := framework.Connect(t.Context(), framework.Config{ConnectString: srv.ConnectString(), DialContext: by.through(srv.DialContext)})
				require.NoError(t, err)
				defer func() { assert.NoError(t, c.Close()) }()
				lock := tc.lock(c)
				require.NoError(t, locks.Do(t.Context(), lock, func(context.Context) error { return nil })) // makes the parents
				by.begin(tc.answer)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, locks.Do(ctx, lock, func(ctx context.Context) error {
					nodes, _, err := c.Children(ctx, "/l")
					assert.Len(t, nodes, 1)
					return err
				}))
				nodes, _, err := c.Children(t.Context(), "/l")
				require.NoError(t, err)
				assert.Empty(t, nodes)
			})
		})
	}
}

// FuzzHostileServer puts any servers before a client: it must come through, and
// work again once they are as they should be.
func FuzzHostileServer(f *testing.F) {
	f.Add([]byte{})
	for at := 0; at < 12; at += 3 {
		for what := byte(tamperDrop); what <= tamperEvent; what++ {
			f.Add(append(make([]byte, at), what, 0xff, 0xff, 0xff, 0xff, what, 0x40, 0, 0, 1))
		}
	}
	// A session of an hour, and a zxid far ahead.
	f.Add([]byte{tamperZxid, 0x00, 0x36, 0xee, 0x80, 0, 0, 0, 0, tamperZxid, 0x30, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 512 {
			t.Skip("no more frames than that come by")
		}
		withHostile(t, script)
	})
}
