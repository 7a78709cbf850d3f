package nodename

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKindOf(t *testing.T) {
	for name, want := range map[string]struct {
		kind   Kind
		recipe string
	}{
		"_c_1-lock-0000000001":  {Lock, Mutex},
		"lock-9999999999":       {Lock, Mutex}, // whether it is a number is for others to say
		"1__READ__0000000001":   {Read, ReadWrite},
		"1__WRIT__0000000001":   {Write, ReadWrite},
		"lease-0000000001":      {Lease, Semaphore},
		"_c_1-latch-0000000001": {Latch, Latches},
		"1__lock__0000000001":   {KazooLock, Kazoo},
		"1__rlock__0000000001":  {KazooRead, Kazoo},
		"1__party__0000000001":  {},
		"lock-000000001":        {},
		"lock-00000000x1":       {},
		"lock--2147483648":      {},
		"0000000001":            {},
		"":                      {},
		Leases:                  {},
	} {
		kind, recipe := KindOf(name)
		assert.Equal(t, want.kind, kind, name)
		assert.Equal(t, want.recipe, recipe, name)
		assert.Equal(t, want.recipe != "" || name == Leases, RecipeOf(name) != "", name)
	}
	assert.Equal(t, Semaphore, RecipeOf(Leases))
	assert.Empty(t, RecipeOf(Turns))
}
