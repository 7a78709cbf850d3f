package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// message is what a process tells the one that started it.
type message struct {
	Begin  uint64  `json:",omitempty"` // a seed
	Result *result `json:",omitempty"`
}

// TestSeeds runs seeds: some in this process, many in several.
func TestSeeds(t *testing.T) {
	switch {
	case *pipe:
		work(t)
	case *seed != 0:
		replay(t)
	case *workers > 0:
		sweep(t)
	default:
		var all counts
		for i := range *seeds {
			res := run(t, *first+uint64(i), nil, plantedBug{})
			all.add(res)
			for _, v := range res.Violations {
				t.Errorf("seed %d: %v", res.Seed, v)
			}
		}
		t.Log("\n" + all.table())
		require.Zero(t, all.undecided, "histories that could not be decided")
	}
}

// work runs every so-manyth seed and tells of each.
func work(t *testing.T) {
	out := json.NewEncoder(os.NewFile(3, "results"))
	tell := func(m message) { require.NoError(t, out.Encode(m)) }
	for i := uint64(0); i < uint64(*seeds); i += *stride {
		s := *first + i
		tell(message{Begin: s})
		res := run(t, s, chosen(t, s), plantedBug{})
		if len(res.Violations) == 0 {
			res.Trace, res.Schedule = nil, nil
		}
		tell(message{Result: res})
	}
}

// chosen are the faults of a seed that -faults selects, nil for all.
func chosen(t *testing.T, seed uint64) []fault {
	t.Helper()
	if *faults == "" {
		return nil
	}
	all, some := scheduleOf(seed), []fault{}
	for word := range strings.SplitSeq(*faults, ",") {
		if word == "none" {
			break
		}
		n, err := strconv.Atoi(word)
		require.NoError(t, err)
		require.Less(t, n, len(all), "seed %d has fewer faults", seed)
		some = append(some, all[n])
	}
	return some
}

// replay tells the story of one seed.
func replay(t *testing.T) {
	res := run(t, *seed, chosen(t, *seed), plantedBug{})
	for _, line := range res.Trace {
		fmt.Println(line)
	}
	var all counts
	all.add(res)
	fmt.Printf("\nstory %s\n", res.Digest)
	for i, f := range res.Schedule {
		fmt.Printf("%4d %v\n", i, f)
	}
	fmt.Print(all.table())
	for _, v := range res.Violations {
		t.Errorf("%v", v)
	}
	require.Zero(t, res.Undecided, "histories that could not be decided")
}

// TestRepeat runs seeds several times: the same seed is to bring the same story.
// It counts and does not insist, as a bubble fixes time and not the scheduler.
func TestRepeat(t *testing.T) {
	if *repeat == 0 {
		return // it counts and cannot fail
	}
	same := 0
	for i := range *seeds {
		stories := make(map[string]int)
		for range *repeat {
			stories[run(t, *first+uint64(i), nil, plantedBug{}).Digest]++
		}
		if len(stories) == 1 {
			same++
		} else {
			t.Logf("seed %d has %d stories in %d runs", *first+uint64(i), len(stories), *repeat)
		}
	}
	t.Logf("%d of %d seeds brought one story in %d runs each", same, *seeds, *repeat)
}
