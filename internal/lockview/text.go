package lockview

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Printable is text as a terminal may show it: control characters, and those that
// change the order or the look of others, are escaped as in Go. What participants write
// is theirs to choose, and a terminal obeys escape sequences.
func Printable(s string) string {
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

// Excerpt is data for one line.
func Excerpt(data []byte) string {
	const most = 120
	text := Printable(string(data[:min(len(data), 2*most)]))
	if r := []rune(text); len(r) > most || len(data) > 2*most {
		return string(r[:min(len(r), most)]) + "..."
	}
	return text
}

// Text is data in JSON: as it is if it is text, otherwise in base64.
type Text []byte

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(t)})
}

// SessionID is a session's id, in hexadecimal as in the servers' logs.
type SessionID int64

// String is the number as servers log it, "" for none.
func (s SessionID) String() string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%#x", uint64(s))
}

// MarshalJSON implements json.Marshaler.
func (s SessionID) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Age is a time span as people say it.
func Age(d time.Duration) string {
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
