package wire

import (
	"encoding/binary"
	"iter"
)

// Names is a list of names as it lies in a reply, whose memory it shares. A list may be
// long, and most readers want one or two of its names.
type Names struct {
	n   int32
	raw []byte // each with its length before it
}

// NamesOf is a list of the names given.
func NamesOf(names []string) Names {
	var e Encoder
	for _, name := range names {
		e.String(name)
	}
	return Names{int32(len(names)), e.B}
}

// Encode implements Record.
func (ns *Names) Encode(e *Encoder) {
	e.Int32(ns.n)
	e.B = append(e.B, ns.raw...)
}

// Decode implements Record.
func (ns *Names) Decode(d *Decoder) {
	*ns = Names{}
	n := d.count(4)
	from := d.b
	for range n {
		d.Bytes()
	}
	if n > 0 && d.err == nil {
		*ns = Names{int32(n), from[:len(from)-len(d.b)]}
	}
}

// Size is how many bytes they take in a reply.
func (ns Names) Size() int { return 4 + len(ns.raw) }

// All are the names, each after where it begins, which At takes.
func (ns Names) All() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for at := 0; at < len(ns.raw); {
			name := ns.At(at)
			if !yield(at, name) {
				return
			}
			at += 4 + len(name)
		}
	}
}

// At is the name that begins there.
func (ns Names) At(at int) []byte {
	n := max(0, int(int32(binary.BigEndian.Uint32(ns.raw[at:])))) // -1 stands for no name
	return ns.raw[at+4:][:n:n]
}

// Strings are the names, which share one copy of the memory.
func (ns Names) Strings() []string {
	all, names := string(ns.raw), make([]string, 0, ns.n)
	for at, name := range ns.All() {
		names = append(names, all[at+4:][:len(name)])
	}
	return names
}
