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
	require.NoError(t, playground.Run(t.Context(), "unittest", "", log.New(&out, "", 0), run))
	assert.Equal(t, `the report is being written
monday: done now true
monday: done now false
the report is being written
tuesday: done now true
`, out.String())
}
