package counts

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLines(t *testing.T) {
	c := make(Tally)
	c.Add("cut", "set", 2)
	c.Add("busy", "set", 1)
	c.Add("busy", "get", 4)
	c.Add("busy", "set", 1)
	assert.Equal(t, []string{
		"sweep: failed: busy                get 4  set 2",
		"sweep: failed: cut                 set 2",
		"sweep: failed: 8 in all, 0 leaks",
	}, c.Lines("failed"))
	assert.Equal(t, []string{"sweep: failed: 0 in all, 0 leaks"}, make(Tally).Lines("failed"))
}
