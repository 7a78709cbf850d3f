package batch

import (
	"fmt"
	"testing"
	"time"

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

func TestPathTimes(t *testing.T) {
	now := time.Now()
	var p pathTimes
	assert.False(t, p.has("/a", now))
	p.add("/a", now.Add(time.Second))
	assert.True(t, p.has("/a", now.Add(time.Second-1)))
	assert.False(t, p.has("/a", now.Add(time.Second)))
	assert.False(t, p.has("/a", now), "it is forgotten")
	for i := range 3 * mostRefused {
		p.add(fmt.Sprint("/", i), now.Add(time.Second))
	}
	assert.LessOrEqual(t, len(p), mostRefused)
}
