package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
)

// print writes text.
func (inv *invocation) print(text string) error {
	_, err := io.WriteString(inv.sys.out, text)
	return err
}

// writeJSON writes one value in one line. A terminal shows it safely too: JSON leaves
// some control characters as they are, which are escaped here.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var safe bytes.Buffer
	for _, r := range b.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			safe.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&safe, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	_, err := safe.WriteTo(w)
	return err
}
