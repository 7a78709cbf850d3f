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
	require.NoError(t, playground.Run(t.Context(), "config", "", log.New(&out, "", 0), run))
	assert.Equal(t, `4 workers, timeout 30
8 workers, timeout 30
16 workers, timeout 5
16 workers, timeout 5
/config/workers is left as it was: decode /config/workers: strconv.Atoi: parsing "many": invalid syntax
`, out.String())
}
