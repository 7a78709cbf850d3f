package batch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/wire"
)

// What was refused once is not refused for ever.
func TestRefusalsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Batches{waiting: []*joint{creationIn("/", 0)}}
		alone := func() bool {
			j := deletionIn("/a")
			require.NoError(t, b.join(j))
			return j.alone
		}
		assert.False(t, alone())
		b.noteRefusal(deletionIn("/a"), wire.CodeNoAuth)
		time.Sleep(refusedFor - 1)
		assert.True(t, alone())
		b.noteRefusal(deletionIn("/b"), wire.CodeNoAuth)
		time.Sleep(time.Nanosecond)
		assert.False(t, alone())
		b.noteRefusal(deletionIn("/a"), wire.CodeNoAuth)
		assert.True(t, alone())
	})
}
