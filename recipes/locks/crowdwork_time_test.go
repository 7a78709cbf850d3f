package locks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/paddock-zk/paddock/internal/test/workload"
)

// A grant of a MultiLock costs the servers no more requests than nested locking of the same,
// or three for each member, however many callers there are.
func TestWorkForAGrant(t *testing.T) {
	t.Parallel()
	span := time.Second
	crowds := []crowdSize{{25, 1, 10, 2, 4, 0}, {25, 1, 30, 2, 4, 0}, {25, 10, 3, 2, 4, 0}, {25, 4, 3, 15, 20, 10}}
	if *wholeCrowds {
		span = 10 * time.Second
		crowds = nil
		for _, n := range []int{10, 30, 100, 300, 1000} {
			crowds = append(crowds, crowdSize{25, 1, n, 2, 4, 0}, crowdSize{25, 10, n / 10, 2, 4, 0})
		}
		crowds = append(crowds, crowdSize{25, 4, 5, 15, 20, 10}, crowdSize{100, 1, 40, 50, 60, 2})
	}
	for _, c := range crowds {
		t.Run(c.String(), func(t *testing.T) {
			nested, multi := c.alone(t, span, workload.Nested), c.alone(t, span, workload.Multi)
			_, _ = fmt.Fprintf(t.Output(), "crowds: work: %v: nested: %s; MultiLocks: %s\n", c, nested.work(), multi.work())
			most := max(nested.forAGrant(nested.requests), 3*float64(c.least+c.most)/2)
			assert.LessOrEqual(t, multi.forAGrant(multi.requests), most, "requests for a grant")
		})
	}
}

// forAGrant is how many of something there were for each grant.
func (s *tally) forAGrant(n int) float64 { return float64(n) / float64(max(1, s.grants)) }

// work is what the server had to do for a grant.
func (s *tally) work() string {
	return fmt.Sprintf("%d rounds, %.1f requests, %.1f lists, %.1f events, %.1f KB", s.rounds(), s.forAGrant(s.requests), s.forAGrant(s.lists),
		s.forAGrant(s.events), s.forAGrant(s.bytes)/1000)
}
