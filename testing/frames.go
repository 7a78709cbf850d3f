package zktest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	if n > cap(f.buf) || cap(f.buf) > keepBuffer {
		f.buf = make([]byte, n)
	}
	f.buf = f.buf[:n]
	_, err := io.ReadFull(f.r, f.buf)
	return f.buf, err
}
