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
	require.NoError(t, playground.Run(t.Context(), "clientgo", "", log.New(&out, "", 0), run))
	assert.Equal(t, `the leader is controller-0
controller-0 has stopped
the leader is controller-1
controller-1 has stopped
`, out.String())
}
