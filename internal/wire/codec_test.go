package wire

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWrongLengthsAreMalformed(t *testing.T) {
	var e Encoder
	e.Int32(-2)
	for name, read := range map[string]func(*Decoder){
		"bytes":   func(d *Decoder) { d.Bytes() },
		"string":  func(d *Decoder) { _ = d.String() },
		"strings": func(d *Decoder) { d.Strings() },
		"names":   func(d *Decoder) { new(Names).Decode(d) },
		"acls":    func(d *Decoder) { d.ACLs() },
	} {
		d := NewDecoder(e.B)
		read(d)
		assert.ErrorIs(t, d.Err(), ErrMalformed, name)
	}

	huge := binary.BigEndian.AppendUint32(nil, 1<<31-1)
	d := NewDecoder(append(huge, make([]byte, 100)...))
	assert.Nil(t, d.Strings())
	assert.ErrorContains(t, d.Err(), "2147483647 entries in 100 bytes")
}

func TestFirstMistakeStays(t *testing.T) {
	d := NewDecoder([]byte{0, 0})
	d.Int32()
	first := d.Err()
	d.Fail("another")
	assert.Equal(t, first, d.Err())
	assert.Zero(t, d.Int64())
	assert.False(t, d.Bool())
}

func TestAppendFrame(t *testing.T) {
	b := AppendFrame([]byte("before"), &RequestHeader{7, OpExists}, &PathWatchRequest{"/a", true})
	assert.Equal(t, append([]byte("before"), 0, 0, 0, 15, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a', 1), b)
}
