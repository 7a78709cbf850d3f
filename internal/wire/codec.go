package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
)

// ErrMalformed reports bytes that are not the record they should be. It is
// wrapped with what was wrong.
var ErrMalformed = errors.New("malformed record")

// Record is a part of a frame that writes and reads itself.
type Record interface {
	// Encode appends the record.
	Encode(e *Encoder)
	// Decode reads the record; mistakes are kept in d.
	Decode(d *Decoder)
}

// Encoder appends values to B. The zero value is ready.
type Encoder struct{ B []byte }

// Int32 appends v.
func (e *Encoder) Int32(v int32) { e.B = binary.BigEndian.AppendUint32(e.B, uint32(v)) }

// Int64 appends v.
func (e *Encoder) Int64(v int64) { e.B = binary.BigEndian.AppendUint64(e.B, uint64(v)) }

// Bool appends v as one byte.
func (e *Encoder) Bool(v bool) {
	if v {
		e.B = append(e.B, 1)
		return
	}
	e.B = append(e.B, 0)
}

// Bytes appends a length and p; nil has the length -1.
func (e *Encoder) Bytes(p []byte) {
	if p == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(p)))
	e.B = append(e.B, p...)
}

// String appends a length and s.
func (e *Encoder) String(s string) {
	e.Int32(int32(len(s)))
	e.B = append(e.B, s...)
}

// Strings appends a count and each string.
func (e *Encoder) Strings(ss []string) {
	e.Int32(int32(len(ss)))
	for _, s := range ss {
		e.String(s)
	}
}

// ACLs appends a count and each entry; nil has the count -1.
func (e *Encoder) ACLs(acls []ACL) {
	if acls == nil {
		e.Int32(-1)
		return
	}
	e.Int32(int32(len(acls)))
	for _, a := range acls {
		e.Int32(a.Perms)
		e.String(a.Scheme)
		e.String(a.ID)
	}
}

// Decoder reads values from the front of a byte slice. After the first
// mistake, which Err returns, every further value is zero.
type Decoder struct {
	// AnyCount takes a count below -1 for 0, as servers written in Java do.
	AnyCount bool

	b   []byte
	err error
}

// Reset makes d read from b, which it keeps.
func (d *Decoder) Reset(b []byte) { d.b, d.err = b, nil }

// NewDecoder reads from b, which it keeps.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err returns the first mistake, wrapping ErrMalformed.
func (d *Decoder) Err() error { return d.err }

// Len returns how many bytes have not been read.
func (d *Decoder) Len() int { return len(d.b) }

// Fail records a mistake, unless there was one before.
func (d *Decoder) Fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	d.b = nil
}

func (d *Decoder) take(n int, what string) []byte {
	if d.err != nil {
		return nil
	}
	if len(d.b) < n {
		d.Fail("%s needs %d bytes, %d are left", what, n, len(d.b))
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

// Int32 reads an int32.
func (d *Decoder) Int32() int32 {
	p := d.take(4, "int")
	if p == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(p))
}

// Int64 reads an int64.
func (d *Decoder) Int64() int64 {
	p := d.take(8, "long")
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

// Bool reads a byte; everything but 0 is true.
func (d *Decoder) Bool() bool {
	p := d.take(1, "boolean")
	return p != nil && p[0] != 0
}

// Bytes reads a length and that many bytes, which share the decoder's memory.
// The length -1 gives nil.
func (d *Decoder) Bytes() []byte {
	n := d.Int32()
	if d.err != nil || n == -1 {
		return nil
	}
	if n < 0 {
		d.Fail("buffer of length %d", n)
		return nil
	}
	return d.take(int(n), "buffer")
}

// String reads a length and a string. The length -1 gives "".
func (d *Decoder) String() string {
	n := d.Int32()
	if d.err != nil || n == -1 {
		return ""
	}
	if n < 0 {
		d.Fail("string of length %d", n)
		return ""
	}
	return string(d.take(int(n), "string"))
}

// count reads the length of a vector whose entries take at least size bytes
// each, so that a wrong count cannot ask for more memory than the frame has.
// The length -1, and every mistake, gives -1.
func (d *Decoder) count(size int) int {
	n := d.Int32()
	if d.err != nil || n == -1 {
		return -1
	}
	if n < -1 && d.AnyCount {
		return 0
	}
	if n < 0 || int64(n)*int64(size) > int64(len(d.b)) || int64(n) > math.MaxInt32 {
		d.Fail("vector of %d entries in %d bytes", n, len(d.b))
		return -1
	}
	return int(n)
}

// Strings reads a count and that many strings. The count -1 gives nil.
func (d *Decoder) Strings() []string {
	n := d.count(4)
	if n < 0 {
		return nil
	}
	ss := make([]string, 0, n)
	for range n {
		ss = append(ss, d.String())
	}
	return ss
}

// ACLs reads a count and that many entries. The count -1 gives nil.
func (d *Decoder) ACLs() []ACL {
	n := d.count(12)
	if n < 0 {
		return nil
	}
	acls := make([]ACL, 0, n)
	for range n {
		acls = append(acls, ACL{Perms: d.Int32(), Scheme: d.String(), ID: d.String()})
	}
	return acls
}

// AppendFrame appends a frame with the given records in it.
func AppendFrame(b []byte, records ...Record) []byte {
	start := len(b)
	e := Encoder{B: append(b, 0, 0, 0, 0)}
	for _, r := range records {
		r.Encode(&e)
	}
	binary.BigEndian.PutUint32(e.B[start:], uint32(len(e.B)-start-4))
	return e.B
}

// scratch are encoders whose buffers are used again.
var scratch = sync.Pool{New: func() any { return new(Encoder) }}

// NewFrame returns a frame with a request's header and body in it, whose
// transaction id is still 0. It takes one allocation of the right size.
func NewFrame(op Op, body Record) []byte {
	e := scratch.Get().(*Encoder)
	e.B = append(e.B[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	e.Int32(int32(op))
	body.Encode(e)
	binary.BigEndian.PutUint32(e.B, uint32(len(e.B)-4))
	frame := append(make([]byte, 0, len(e.B)), e.B...)
	if cap(e.B) <= 64<<10 { // one large request must not keep its memory
		scratch.Put(e)
	}
	return frame
}
