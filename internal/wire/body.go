package wire

// Body is a record that was encoded before.
type Body []byte

// Encode implements Record.
func (b *Body) Encode(e *Encoder) { e.B = append(e.B, *b...) }

// Decode implements Record. It takes all that is left, which shares the decoder's memory.
func (b *Body) Decode(d *Decoder) { *b = d.take(d.Len(), "body") }
