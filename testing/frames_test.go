package zktest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// lie announces a frame and sends less.
type lie struct{ announced, sent int }

func (l lie) reader() *bufio.Reader {
	b := binary.BigEndian.AppendUint32(nil, uint32(l.announced))
	return bufio.NewReader(bytes.NewReader(append(b, make([]byte, l.sent)...)))
}

func TestFrameReaderBelievesBytesOnly(t *testing.T) {
	f := frameReader{r: lie{announced: 512 << 20, sent: 100}.reader(), max: 1 << 30}
	_, err := f.next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.LessOrEqual(t, cap(f.buf), 2*keepBuffer, "memory follows what has arrived")
}

func TestFrameReaderReadsLongFrames(t *testing.T) {
	var stream []byte
	for n := range 40 {
		body := bytes.Repeat([]byte{byte(n)}, n*9973)
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(body))), body...)
	}
	f := frameReader{r: bufio.NewReader(bytes.NewReader(stream)), max: 1 << 20}
	for n := range 40 {
		frame, err := f.next()
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{byte(n)}, n*9973), append([]byte{}, frame...))
	}
	_, err := f.next()
	require.ErrorIs(t, err, io.EOF)
}

// FuzzFrameReader reads any bytes as frames: what comes out is what went in,
// and nothing is larger than allowed.
func FuzzFrameReader(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 7, 0, 0, 0, 0}, 10)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, 10)
	f.Add([]byte{0, 0, 1, 0, 1}, 1000)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = limit & 0xfffff
		r := frameReader{r: bufio.NewReader(bytes.NewReader(b)), max: limit}
		var back []byte
		for {
			frame, err := r.next()
			if err != nil {
				if !errors.Is(err, errFrame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				break
			}
			require.LessOrEqual(t, len(frame), limit)
			back = append(binary.BigEndian.AppendUint32(back, uint32(len(frame))), frame...)
		}
		require.True(t, bytes.HasPrefix(b, back))
		require.LessOrEqual(t, cap(r.buf), 2*(len(b)+keepBuffer))
	})
}

// FuzzDecoders decodes any bytes as the body of every kind of request. What
// could be read is written, read and written again as the same.
func FuzzDecoders(f *testing.F) {
	acl := []wire.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
	for _, r := range []wire.Record{
		&wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/a", Data: []byte("x"), ACL: acl}, TTL: 5},
		&wire.MultiRequest{Ops: []wire.MultiOp{{Op: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/a"}}}},
		&wire.SetWatches2Request{SetWatchesRequest: wire.SetWatchesRequest{Data: []string{"/a", "/b"}}, Persistent: []string{"/c"}},
		&wire.AuthRequest{Scheme: "digest", Auth: []byte("a:b")},
		&wire.ConnectRequest{Password: make([]byte, 16), HasReadOnly: true},
	} {
		var e wire.Encoder
		r.Encode(&e)
		f.Add(e.B)
	}
	bodies := []func() wire.Record{body[wire.ConnectRequest](), body[wire.RequestHeader]()}
	for _, k := range kinds {
		if k.body != nil {
			bodies = append(bodies, k.body)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, body := range bodies {
			first := body()
			d := wire.NewDecoder(b)
			first.Decode(d)
			if d.Err() != nil {
				continue
			}
			describe(first)
			_ = text(first)
			var e wire.Encoder
			first.Encode(&e)
			second := body()
			d = wire.NewDecoder(e.B)
			second.Decode(d)
			require.NoError(t, d.Err())
			require.Zero(t, d.Len())
			var again wire.Encoder
			second.Encode(&again) // not DeepEqual: a null vector is written as an empty one
			require.Equal(t, e.B, again.B)
		}
	})
}
