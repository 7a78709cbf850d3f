package leader_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/recipes/leader"
)

// termChecker sees each term as it begins: all terms before it must have ended, and have lower
// numbers.
type termChecker struct {
	t     *testing.T
	mu    sync.Mutex
	terms []*leader.Term
	late  time.Duration // by which others may hear of their end
}

// force says whether the next term ends by force: the servers do not wait for its leader
// then.
func (j *termChecker) force(by bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.late = 0; by {
		j.late = 2*d + sessionTimeout/15 // a client hears of it after a pause before its dial
	}
}

func (j *termChecker) begins(term *leader.Term) {
	j.mu.Lock()
	late := j.late
	j.mu.Unlock()
	time.Sleep(late)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, before := range j.terms {
		assert.Less(j.t, before.Number(), term.Number())
		assert.Error(j.t, before.Context().Err(), "%v goes on beside %v", before, term)
	}
	j.terms = append(j.terms, term)
}

func (j *termChecker) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.terms)
}
