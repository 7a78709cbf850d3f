package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// printable is text as a terminal may show it: control characters, and those that
// change the order or the look of others, are escaped as in Go. What participants write
// is theirs to choose, and a terminal obeys escape sequences.
func printable(s string) string {
	plain := func(r rune) bool { return unicode.IsPrint(r) && r != utf8.RuneError && r != '\\' }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case plain(r):
			b.WriteRune(r)
		case r == utf8.RuneError:
			_, n := utf8.DecodeRuneInString(s[i:])
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// excerpt is data for one line.
func excerpt(data []byte) string {
	const most = 120
	text := printable(string(data[:min(len(data), 2*most)]))
	if r := []rune(text); len(r) > most || len(data) > 2*most {
		return string(r[:min(len(r), most)]) + "..."
	}
	return text
}

// text is data in JSON: as it is if it is text, otherwise in base64.
type text []byte

// MarshalJSON implements json.Marshaler.
func (t text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(t)})
}

// session is a session's id, in hexadecimal as in the servers' logs.
type session int64

// String is the number as servers log it, "" for none.
func (s session) String() string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%#x", uint64(s))
}

// MarshalJSON implements json.Marshaler.
func (s session) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

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

// age is a time span as people say it.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return d.Truncate(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Truncate(time.Second).String()
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
