package main

import (
	"log"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/paddock-zk/paddock/examples/internal/playground"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, playground.Run(t.Context(), "mutex", "", log.New(&out, "", 0), run))
	assert.Equal(t, `Ann has the lock
Bob has tried for 50ms, in vain: true
Ann has entered it a second time
Bob has the lock
Bob stops, since the lock is lost: true
`, out.String())
}
