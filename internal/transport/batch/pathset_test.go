package batch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPathSet(t *testing.T) {
	var s pathSet
	assert.False(t, s.has("/a"))
	s.add("/a")
	s.add("/b")
	assert.True(t, s.has("/a"))
	s.remove("/a")
	assert.False(t, s.has("/a"))
	for i := range mostPaths + mostPaths/2 {
		s.add(fmt.Sprint("/", i))
		if i%1000 == 0 {
			require.True(t, s.has("/b"), "what is asked for is kept")
		}
	}
	for i := range 4 * mostPaths {
		s.add(fmt.Sprint("/more/", i))
	}
	assert.False(t, s.has("/b"))
	assert.LessOrEqual(t, len(s.young)+len(s.old), 2*mostPaths)
	s.remove(fmt.Sprint("/more/", 4*mostPaths-1))
	assert.False(t, s.has(fmt.Sprint("/more/", 4*mostPaths-1)))
}
