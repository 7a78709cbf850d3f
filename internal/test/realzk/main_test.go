//go:build unix

package realzk

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// mortal is set in the environment of the process that
// TestDeathOfTheProcess starts and kills.
const mortal = "REALZK_TEST_MORTAL"

// serveUntilKilled is what that process does; set where the tag realzk is.
var serveUntilKilled func()

func TestMain(m *testing.M) {
	if os.Getenv(mortal) != "" {
		serveUntilKilled()
		return
	}
	goleak.VerifyTestMain(m)
}
