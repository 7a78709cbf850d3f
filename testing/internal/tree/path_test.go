package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValidPath(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, "/a/b": true, "/.a": true, "/...": true, "/a.": true, "/ü": true, "/\u00a0": true, "/\ufffc": false,
		"": false, "a": false, "//": false, "/a/": false, "/a//b": false, "/.": false, "/a/..": false, "/./a": false, "/a/../b": false,
		"/\x00": false, "/\x1f": false, "/\x7f": false, "/\ue000": false, "/\U00010000": false, "/\xff": false, "/\uf900": true,
	} {
		assert.Equal(t, want, validPath(path), "%q", path)
	}
}
