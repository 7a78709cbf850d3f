package main

import (
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	var out strings.Builder
	require.NoError(t, run(t.Context(), log.New(&out, "", 0)))
	assert.Equal(t, `GET, which may be repeated:
  attempt 1: Too Many Requests
  attempt 2: Service Unavailable
  it costs 12 pounds
POST, which may not:
  given up after 1 attempt: Bad Gateway, may have taken effect
`, out.String())
}
