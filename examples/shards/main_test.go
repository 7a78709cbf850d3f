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
	require.NoError(t, playground.Run(t.Context(), "shards", "", log.New(&out, "", 0), run))
	assert.Equal(t, `Ann is alone and leads 4 shards
Bob has come: each of them leads 2 shards
Bob has gone: Ann leads 4 shards
`, out.String())
}
