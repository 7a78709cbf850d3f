// Package health has handlers for the probes of an orchestrator such as Kubernetes,
// for a process that stands in an election.
package health

import (
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/paddock-zk/paddock/recipes/leader"
)

// Candidate is a *leader.Latch or a *leader.Selector.
type Candidate interface {
	ID() string
	Path() string
	Term() *leader.Term
	Overrun() bool
}

// Live is for a liveness probe of a process with one candidate or several. It answers 503
// while a function of any of them goes on although its term has ended, see leader.Grace:
// nobody can lead in that election until the process ends. Otherwise it answers 200,
// whether the candidates lead or not. A lost connection is no reason to restart a process.
// The text has a line for each candidate. Live panics if one is nil.
func Live(c Candidate, more ...Candidate) http.Handler {
	all := append([]Candidate{c}, more...)
	mustBe(all...)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, lines := http.StatusOK, ""
		for _, c := range all {
			says := does(c)
			if c.Overrun() {
				status, says = http.StatusServiceUnavailable, "the leader function goes on after the end of its term"
			}
			who := c.ID()
			if len(all) > 1 {
				who += " at " + c.Path()
			}
			lines += who + ": " + says + "\n"
		}
		answer(w, status, lines)
	})
}

// Leading is for a readiness probe of a service that only the leader may serve. It
// answers 200 while the candidate leads, and 503 otherwise. It panics if c is nil.
func Leading(c Candidate) http.Handler {
	mustBe(c)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := http.StatusOK
		if c.Term() == nil {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, c.ID()+": "+does(c)+"\n")
	})
}

// mustBe panics where a handler is made. A panic in the handler would fail each probe, and
// have a process restarted again and again.
func mustBe(all ...Candidate) {
	for _, c := range all {
		if v := reflect.ValueOf(c); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			panic("health: candidate is nil")
		}
	}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// does is what a candidate does.
func does(c Candidate) string {
	if term := c.Term(); term != nil {
		return fmt.Sprintf("leads, %v", term)
	}
	return "does not lead"
}
