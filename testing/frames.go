package zktest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// frameReader reads frames into a buffer that it uses again.
type frameReader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// keepBuffer is the capacity up to which a buffer is used again.
const keepBuffer = 64 << 10

// errFrame reports a frame of impossible length.
var errFrame = errors.New("bad frame length")

// next returns the next frame, which is good until the one after.
func (f *frameReader) next() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > f.max {
		return nil, fmt.Errorf("%w: %d", errFrame, n)
	}
	if cap(f.buf) > keepBuffer {
		f.buf = nil
	}
	// The buffer grows with what arrives, not with what is announced.
	f.buf = f.buf[:0]
	for len(f.buf) < n {
		have := len(f.buf)
		more := min(n-have, max(have, keepBuffer))
		f.buf = slices.Grow(f.buf, more)[:have+more]
		if _, err := io.ReadFull(f.r, f.buf[have:]); err != nil {
			return nil, err
		}
	}
	return f.buf, nil
}
