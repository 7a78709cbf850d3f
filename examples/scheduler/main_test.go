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
	require.NoError(t, playground.Run(t.Context(), "scheduler", "", log.New(&out, "", 0), run))
	assert.Equal(t, `replica-1 leads
a job by replica-1
a job by replica-1
a job by replica-1
replica-1 leaves
replica-2 leads
a job by replica-2
a job by replica-2
a job by replica-2
replica-2 leaves
replica-3 leads
a job by replica-3
a job by replica-3
a job by replica-3
`, out.String())
}
