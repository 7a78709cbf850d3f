//go:build realzk

package robustness

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/internal/test/check"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// history is what a process records, a line for each thing that happened, at
// once: the process may be killed.
type history struct {
	name  string
	blind bool // to the end of holds

	mu   sync.Mutex // guards the fields below
	out  io.WriteCloser
	last int
}

// record is one line.
type record struct {
	ID      int           `json:",omitempty"` // of a hold
	Granted *check.Hold   `json:",omitempty"` // without its end
	Ended   time.Duration `json:",omitempty"`
	Over    bool          `json:",omitempty"`
	Write   *check.Write  `json:",omitempty"`
	Wait    *check.Wait   `json:",omitempty"`
	Count   string        `json:"Tally,omitempty"` // something to be counted, by its name in older commits
}

func openHistory(name, file string, blind bool) (*history, error) {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &history{name: name, blind: blind, out: out}, err
}

func (h *history) write(r record) (id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Granted != nil {
		h.last++
		r.ID = h.last
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = h.out.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Println("failed:", err)
	}
	return r.ID
}

func (h *history) count(what string) { h.write(record{Count: what}) }

// observedHold is a hold under observation, from its grant until over.
type observedHold struct {
	history *history
	hold    *locks.Hold
	owner   int
	nodes   []string
	ids     []int
	stop    chan struct{}
	wg      sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	last int64      // when it was last believed in
	ever bool
}

// kind is what is held, by how many leases or members.
type kind struct {
	lock string
	mode check.Mode
}

// observe begins to observe a hold. There is a kind for each of its members, or
// one for all; holds of one owner do not exclude each other.
func (h *history) observe(hold *locks.Hold, owner int, kinds ...kind) *observedHold {
	b := &observedHold{history: h, hold: hold, owner: owner, stop: make(chan struct{}), last: stamp()}
	parts := hold.Members()
	if len(parts) == 0 {
		parts = []*locks.Hold{hold}
	}
	for i, part := range parts {
		k := kinds[min(i, len(kinds)-1)]
		b.nodes = append(b.nodes, part.Path())
		b.ids = append(b.ids, h.write(record{Granted: &check.Hold{
			Who: h.name, Owner: owner, Lock: "/locks/" + k.lock, Mode: k.mode, Node: part.Path(),
			Token: part.FencingToken(), Granted: time.Duration(b.last),
		}}))
	}
	b.wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for b.asked() {
			select {
			case <-tick.C:
			case <-b.stop:
				return
			}
		}
	})
	return b
}

// asked reports whether the hold is believed in. The time is taken before asking:
// who is stopped in between has not believed since.
func (b *observedHold) asked() bool {
	now := stamp()
	if b.hold.Err() != nil && !b.history.blind {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.ever = max(b.last, now), true
	return true
}

// over ends the observation, before the hold is released.
func (b *observedHold) over() {
	b.asked()
	close(b.stop)
	b.wg.Wait()
	for _, id := range b.ids {
		b.history.write(record{Ended: time.Duration(b.last), Over: !b.ever, ID: id})
	}
}

// read takes in the history of a process. Of what it held when it was killed
// nothing is known but the beginning.
func read(t *testing.T, file string, rec *check.Record, tally map[string]int) {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	open := make(map[int]check.Hold)
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // what was half written goes with it
		}
		require.NoError(t, err)
		var one record
		require.NoError(t, json.Unmarshal(line, &one))
		switch {
		case one.Granted != nil:
			open[one.ID] = *one.Granted
		case one.Ended != 0:
			h := open[one.ID]
			h.Ended, h.Over = one.Ended, one.Over
			rec.Holds = append(rec.Holds, h)
			delete(open, one.ID)
		case one.Write != nil:
			rec.Writes = append(rec.Writes, *one.Write)
		case one.Wait != nil:
			rec.Waits = append(rec.Waits, *one.Wait)
		default:
			tally[one.Count]++
		}
	}
	for _, h := range open {
		h.Ended = h.Granted
		rec.Holds = append(rec.Holds, h)
		tally["held when killed"]++
	}
}
