package framework

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPathLength is a length in bytes. A path of this length or longer is refused.
const MaxPathLength = 4096

// ValidatePath says what is wrong with an absolute path, wrapping
// ErrInvalidPath, or returns nil.
//
// A path begins with a slash and, except for the root, does not end with one. Its
// elements are neither empty nor "." nor "..". It is UTF-8 without control
// characters, private-use characters and those from U+FFF0 on, so it has no emoji.
// It is shorter than MaxPathLength.
//
// Source: ZooKeeper's PathUtils and Curator's ZKPaths. Differs: the length, and
// the first and last character of each forbidden range, which Curator lets pass
// by oversight.
func ValidatePath(path string) error {
	if reason := pathFault(path); reason != "" {
		return fmt.Errorf("%w: %s: %s", ErrInvalidPath, shown(path), reason)
	}
	return nil
}

// checkNamespace says what is wrong with a namespace, as it was written.
func checkNamespace(namespace string) error {
	switch reason := pathFault("/" + namespace); {
	case namespace == "" || reason == "":
		return nil
	case strings.HasPrefix(namespace, "/"), strings.HasSuffix(namespace, "/"):
		return fmt.Errorf("%w: %s: %s: write it without slashes around it, as in %q", ErrInvalidPath, shown(namespace), reason, "app/jobs")
	default:
		return fmt.Errorf("%w: %s: %s", ErrInvalidPath, shown(namespace), reason)
	}
}

// full puts chroot and namespace before a path. The digits that servers put behind that of a
// sequential node have to fit, too: nobody could name the node otherwise.
func (b *base) full(path string, sequential bool) (string, error) {
	digits := digitsOf(sequential)
	if err := ValidatePath(path + digits); err != nil {
		return "", err
	}
	if b.namespace != "" {
		if err := checkNamespace(b.namespace[1:]); err != nil {
			return "", fmt.Errorf("namespace: %w", err)
		}
	}
	switch {
	case b.prefix == "":
		return path, nil
	case path == "/":
		return b.prefix, nil
	}
	full := b.prefix + path
	if len(full)+len(digits) >= MaxPathLength {
		return "", ValidatePath(full + digits)
	}
	return full, nil
}

// digitsOf stand for those of a sequential node.
func digitsOf(sequential bool) string {
	if sequential {
		return "0000000000"
	}
	return ""
}

// relative takes chroot and namespace off again.
func (b *base) relative(full string) string {
	rest := strings.TrimPrefix(full, b.prefix)
	if rest == "" {
		return "/"
	}
	return rest
}

// shown is a path for an error's text: quoted, and not at full length.
func shown(path string) string {
	if len(path) > 100 {
		return fmt.Sprintf("%q... (%d bytes)", path[:100], len(path))
	}
	return fmt.Sprintf("%q", path)
}

func pathFault(path string) string {
	switch {
	case path == "":
		return "it is empty"
	case path[0] != '/':
		return "it does not begin with a slash"
	case path == "/":
		return ""
	case path[len(path)-1] == '/':
		return "it ends with a slash"
	case len(path) >= MaxPathLength:
		return fmt.Sprintf("it is longer than %d bytes", MaxPathLength-1)
	case !utf8.ValidString(path):
		return "it is not UTF-8"
	}
	for _, element := range strings.Split(path[1:], "/") {
		switch element {
		case "":
			return "it has an empty element"
		case ".", "..":
			return fmt.Sprintf("it has the relative element %q", element)
		}
	}
	for i, r := range path {
		if forbidden(r) {
			return fmt.Sprintf("it has the character %U at byte %d", r, i)
		}
	}
	return ""
}

// forbidden is whether servers refuse a character. They look at UTF-16 units,
// so they see surrogates where a character lies beyond the basic plane.
func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// MakePath joins parts with single slashes: MakePath("a/", "/b") is "/a/b".
// Empty parts are left out; with nothing left it is "/".
//
// Source: Curator's ZKPaths.makePath.
func MakePath(parts ...string) string {
	// Two valid parts need no more than session.Join, in internal/session/path.go.
	var b strings.Builder
	for _, part := range parts {
		if part = strings.Trim(part, "/"); part != "" {
			b.WriteByte('/')
			b.WriteString(part)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// PathAndNode splits off the last element: "/a/b" gives "/a" and "b". The root
// gives "/" and "".
//
// Source: Curator's ZKPaths.getPathAndNode.
func PathAndNode(path string) (parent, node string) {
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0:
		return "/", path
	case i == 0:
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

// sequenceDigits is how long the number is that a sequential mode appends.
const sequenceDigits = 10

// Sequence returns the number that a sequential mode has put at the end of name. ok
// is false unless name ends in exactly ten digits and the number fits into 31 bits.
// Beyond that the servers' counter turns negative, and the order of the numbers
// means nothing.
func Sequence(name string) (n int32, ok bool) {
	if len(name) < sequenceDigits {
		return 0, false
	}
	var v int64
	for _, c := range []byte(name[len(name)-sequenceDigits:]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = 10*v + int64(c-'0')
	}
	if v > 1<<31-1 {
		return 0, false
	}
	return int32(v), true
}
