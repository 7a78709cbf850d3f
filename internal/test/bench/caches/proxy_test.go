//go:build unix

package main

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Frames are counted wherever the stream is cut, and pings are not.
func TestFrames(t *testing.T) {
	frame := func(xid int32, body int) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(4+body))
		return append(binary.BigEndian.AppendUint32(b, uint32(xid)), make([]byte, body)...)
	}
	var stream []byte
	for _, b := range [][]byte{frame(0, 40), frame(-2, 4), frame(1, 0), frame(-2, 4), frame(2, 70)} {
		stream = append(stream, b...)
	}
	for size := 1; size <= len(stream); size++ {
		var f frames
		bytes, begun := 0, 0
		for at := 0; at < len(stream); at += size {
			n, b := f.feed(stream[at:min(at+size, len(stream))])
			bytes, begun = bytes+n, begun+b
		}
		assert.Equal(t, 48+8+78, bytes, "in pieces of %d", size)
		assert.Equal(t, 3, begun, "in pieces of %d", size)
	}
}
