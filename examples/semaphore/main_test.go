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
	require.NoError(t, playground.Run(t.Context(), "semaphore", "", log.New(&out, "", 0), run))
	assert.Equal(t, `6 downloads are done, at most 2 ran at a time
one caller has both leases, there is no third: true
it gave one back, and somebody else has it
`, out.String())
}
