package sim

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var (
	seeds   = flag.Int("seeds", 20, "how many seeds to run")
	seed    = flag.Uint64("seed", 0, "run this seed only, and tell its story")
	first   = flag.Uint64("first", 1, "the first seed")
	workers = flag.Int("workers", 0, "how many processes; 0 is one for each processor")
	worker  = flag.Bool("worker", false, "be one of the processes")
	repeat  = flag.Int("repeat", 0, "run each seed so often and compare the stories")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
