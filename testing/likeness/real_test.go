//go:build realzk

package likeness

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the real server's transcripts to testdata")

func TestRealSpeaksLikeZktest(t *testing.T) {
	addr := os.Getenv("ZK_ADDRS")
	if addr == "" {
		t.Fatal("ZK_ADDRS is empty")
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			real := transcript(t, addr, fmt.Sprintf("/likeness-%x", rand.Uint64()), nil, tc.script)
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(golden(tc.name), []byte(real), 0o644))
			}
			compare(t, real, onZktest(t, tc.script))
		})
	}
}
