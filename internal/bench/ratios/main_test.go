package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const output = `goos: linux
BenchmarkReal/uncontended/raw-2     100   1000 ns/op   10 B/op
BenchmarkReal/uncontended/raw-2     100   3000 ns/op   10 B/op
BenchmarkReal/uncontended/raw-2     100   2000 ns/op   10 B/op
BenchmarkReal/uncontended/multi-3-2 100   5000 ns/op
BenchmarkReentry-2                  100   200 ns/op
PASS
`

func TestRatios(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(strings.NewReader(output), &out))
	assert.True(t, strings.HasPrefix(out.String(), output), "what was read is shown")
	assert.Regexp(t, `Real, uncontended\s+median µs\s+x raw\s+runs`, out.String())
	assert.Regexp(t, `raw\s+2\s+1\.00\s+3`, out.String())
	assert.Regexp(t, `multi-3\s+5\s+2\.50\s+1`, out.String())
}

func TestFailedBenchmark(t *testing.T) {
	assert.Error(t, run(strings.NewReader("--- FAIL: BenchmarkReal\nFAIL\n"), &strings.Builder{}))
}
