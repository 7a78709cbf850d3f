package tree

import "unicode/utf8"

// validPath reports whether path may name a node.
//
// Source: ZooKeeper PathUtils.validatePath. Java looks at UTF-16 units, so
// everything beyond the basic plane is a surrogate there, and is refused.
func validPath(path string) bool {
	if path == rootPath {
		return true
	}
	if path == "" || path[0] != '/' {
		return false
	}
	start := 1 // of the present element
	for i, r := range path {
		switch {
		case r == '/':
			if i > 0 && !validElement(path[start:i]) {
				return false
			}
			start = i + 1
		case !validRune(r):
			return false
		}
	}
	return validElement(path[start:])
}

func validElement(s string) bool { return s != "" && s != "." && s != ".." }

func validRune(r rune) bool {
	switch {
	case r == utf8.RuneError, // also what bytes that are no UTF-8 become
		r <= 0x1f,
		r >= 0x7f && r <= 0x9f,
		r >= 0xd800 && r <= 0xf8ff,
		r >= 0xfff0:
		return false
	}
	return true
}
