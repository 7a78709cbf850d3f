package leader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/recipes/locks"
)

func TestReleaseWaitIsNotNegative(t *testing.T) {
	_, err := optionsOf([]Option{ReleaseWait(-time.Second)})
	assert.ErrorIs(t, err, locks.ErrInvalidLock)
	assert.ErrorContains(t, err, "ReleaseWait is -1s")
	opts, err := optionsOf([]Option{ReleaseWait(0)})
	assert.NoError(t, err)
	assert.Zero(t, opts.releaseWait)
}
