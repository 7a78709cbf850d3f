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
	require.NoError(t, playground.Run(t.Context(), "readwrite", "", log.New(&out, "", 0), run))
	assert.Equal(t, `two readers are in
a third reader has to wait for the writer: true
a reader cannot become the writer: true
the readers leave
the writer is in, alone
the writer has become a reader
`, out.String())
}
