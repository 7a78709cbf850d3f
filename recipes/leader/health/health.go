// Package health has handlers for the probes of an orchestrator such as Kubernetes,
// for a process that stands in an election.
package health

import (
	"fmt"
	"net/http"

	"github.com/paddock-zk/paddock/recipes/leader"
)

// Candidate is a *leader.Latch or a *leader.Selector.
type Candidate interface {
	ID() string
	Term() *leader.Term
	Overrun() bool
}

// Live is for a liveness probe. It answers 503 while a function goes on although its term
// has ended, see leader.Grace: nobody can lead then until the process ends. Otherwise it
// answers 200, whether the candidate leads or not. A lost connection is no reason to
// restart a process.
func Live(c Candidate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c.Overrun() {
			http.Error(w, c.ID()+": the leader function goes on after the end of its term", http.StatusServiceUnavailable)
			return
		}
		answer(w, c)
	})
}

// Leading is for a readiness probe of a service that only the leader may serve. It
// answers 200 while the candidate leads, and 503 otherwise.
func Leading(c Candidate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c.Term() == nil {
			http.Error(w, c.ID()+": does not lead", http.StatusServiceUnavailable)
			return
		}
		answer(w, c)
	})
}

func answer(w http.ResponseWriter, c Candidate) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if term := c.Term(); term != nil {
		_, _ = fmt.Fprintf(w, "%s: leads, %v\n", c.ID(), term)
		return
	}
	_, _ = fmt.Fprintf(w, "%s: does not lead\n", c.ID())
}
