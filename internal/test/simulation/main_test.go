package simulation

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var (
	seeds   = flag.Int("seeds", 4, "how many seeds to run")
	first   = flag.Uint64("first", 1, "the first of them")
	seed    = flag.Uint64("seed", 0, "run this seed only, and tell its story")
	faults  = flag.String("faults", "", "with -seed: only these of its faults, by number, such as 3,7,12")
	workers = flag.Int("workers", 0, "run the seeds in so many processes; 0 is in this one")
	repeat  = flag.Int("repeat", 0, "how often TestRepeat runs each seed; 0 leaves it out")
	stride  = flag.Uint64("stride", 1, "of a process among several: from one seed to its next")
	pipe    = flag.Bool("pipe", false, "be one of several processes, and report to file descriptor 3")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
