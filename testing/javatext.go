package zktest

import (
	"unicode/utf16"
	"unicode/utf8"
)

// javaText returns a text as a server written in Java sends back what it was
// sent. It keeps text in 16-bit units and writes each by itself. So a character
// beyond the basic plane comes back as two characters of three bytes each,
// which is not UTF-8. What was no UTF-8 comes back as U+FFFD.
//
// Source: jute BinaryOutputArchive.stringToByteBuffer; java.lang.String.
func javaText(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return unitByUnit(s)
		}
	}
	return s
}

func unitByUnit(s string) string {
	var b []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			n = malformed(s)
		}
		s = s[n:]
		high, low := utf16.EncodeRune(r)
		if high == utf8.RuneError {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range []rune{high, low} {
			b = append(b, 0xe0|byte(unit>>12), 0x80|byte(unit>>6)&0x3f, 0x80|byte(unit)&0x3f)
		}
	}
	return string(b)
}

// malformed returns how many bytes stand for one U+FFFD: those that begin a
// character which does not go on, or half of a surrogate pair.
func malformed(s string) int {
	tail := func(i int) bool { return i < len(s) && s[i]&0xc0 == 0x80 }
	switch b := s[0]; {
	case b < 0xe0, b > 0xf4, !tail(1), b == 0xe0 && s[1] < 0xa0, b == 0xf0 && s[1] < 0x90, b == 0xf4 && s[1] > 0x8f:
		return 1
	case (b == 0xed || b >= 0xf0) && tail(2):
		return 3
	}
	return 2
}
