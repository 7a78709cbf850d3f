package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRepeat(t *testing.T) {
	distinct, same := 0, 0
	for i := range *seeds {
		digests := map[string]int{}
		for n := range *repeat {
			res := run(t, *first+uint64(i), nil, plant{})
			if digests[res.Digest]++; digests[res.Digest] == 1 {
				_ = os.WriteFile(filepath.Join("/tmp", "story-"+string(rune('0'+n))), []byte(strings.Join(res.Story, "\n")), 0o600)
			}
		}
		if len(digests) == 1 {
			same++
		} else {
			distinct++
			t.Logf("seed %d: %v", *first+uint64(i), digests)
			if os.Getenv("STOP") != "" {
				t.FailNow()
			}
		}
	}
	t.Logf("%d of %d seeds repeat %d times", same, same+distinct, *repeat)
}

func TestSeeds(t *testing.T) {
	if *seed != 0 {
		res := run(t, *seed, nil, plant{})
		for _, line := range res.Story {
			t.Log(line)
		}
		for _, v := range res.Violations {
			t.Errorf("%v", v)
		}
		return
	}
	for i := range *seeds {
		res := run(t, *first+uint64(i), nil, plant{})
		t.Logf("%d %s %v fired %v ops %d stale %d recovery %v", res.Seed, res.Digest, res.Virtual, res.Fired, res.Operations, res.Stale, res.Recovery)
		for _, v := range res.Violations {
			t.Errorf("seed %d: %v", res.Seed, v)
		}
	}
}
