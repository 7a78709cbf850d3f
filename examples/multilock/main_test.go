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
	require.NoError(t, playground.Run(t.Context(), "multilock", "", log.New(&out, "", 0), run))
	assert.Equal(t, `10 transfers of 5 one way and of 3 the other: Ann has 80, Bob has 120, together 200
`, out.String())
}
