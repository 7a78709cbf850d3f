//go:build interop

package interop

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/leader"
)

// patient is for how long what gives back waits, as the machine may have much other work.
const patient = 20 * time.Second

// candidate is a Latch or a Selector.
type candidate interface {
	Await(ctx context.Context) (*leader.Term, error)
	Participants(ctx context.Context) ([]leader.Participant, error)
}

func newCandidate(c *framework.Client, kind, path, id string) candidate {
	if kind == "latch" {
		return leader.NewLatch(c, path, leader.ID(id), leader.ReleaseWait(patient))
	}
	return leader.NewSelector(c, path, leader.ID(id), leader.ReleaseWait(patient))
}

// standing is Election.java in Go: a candidate that stands once.
type standing struct {
	candidate
	quit context.CancelFunc
	done chan struct{} // closed once it leads, or does not stand
	term *leader.Term
	err  error
}

func begin(ctx context.Context, c candidate) *standing {
	ctx, quit := context.WithCancel(ctx)
	s := &standing{candidate: c, quit: quit, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.term, s.err = c.Await(ctx)
	}()
	return s
}

func (p *goPeer) standing(id string) *standing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stands[id]
}

func (s *standing) led() error {
	<-s.done
	return s.err
}

func (s *standing) ids(ctx context.Context) (string, error) {
	all, err := s.Participants(ctx)
	var ids []string
	for _, p := range all {
		id := p.ID
		if p.Leads {
			id += "*"
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, ","), err
}

// write writes data to a node in a transaction of the term.
func (s *standing) write(ctx context.Context, path, data string) error {
	<-s.done
	if s.err != nil {
		return s.err
	}
	tx := s.term.Transaction()
	tx.Set(path, []byte(data), framework.AnyVersion)
	_, err := tx.Commit(ctx)
	return err
}

func (s *standing) leave() error {
	s.quit()
	<-s.done
	if s.term == nil {
		return nil
	}
	return s.term.Release()
}

var elections = []string{"latch", "selector"}

// Candidates of both languages lead in the order in which they came, and each reads the
// ids of all.
func TestElectionOrder(t *testing.T) {
	for _, kind := range elections {
		t.Run(kind, func(t *testing.T) {
			pairs(t, func(t *testing.T, one, two string) {
				below, servers := chroot(t)
				p, q := shared.peers[one][0], shared.peers[two][1]
				pc, qc := p.client(t, servers), q.client(t, servers)
				a, b, c := shared.name("a"), shared.name("b"), shared.name("c")
				p.do(t, "stand", a, pc, kind, "/e")
				p.do(t, "led", a)
				q.do(t, "stand", b, qc, kind, "/e")
				queued(t, below+"/e", 2)
				p.do(t, "stand", c, pc, kind, "/e")
				queued(t, below+"/e", 3)
				want := a + "*," + b + "," + c
				assert.Equal(t, want, p.do(t, "ids", a))
				assert.Equal(t, want, q.do(t, "ids", b))
				led, last := q.begin("led", b), p.begin("led", c)
				led.pending(t, "two leaders")
				p.do(t, "leave", a)
				led.ok(t)
				last.pending(t, "two leaders")
				assert.Equal(t, b+"*,"+c, p.do(t, "ids", c))
				q.do(t, "leave", b)
				last.ok(t)
				p.do(t, "leave", c)
				nothingLeft(t, below)
			})
		})
	}
}

// The term of a process that was killed passes to the other language within the session
// timeout and some ticks. An observer hears who leads, in either language.
func TestLeaderKilled(t *testing.T) {
	for _, kind := range elections {
		for _, victim := range languages {
			t.Run(kind+"/"+victim, func(t *testing.T) {
				below, servers := chroot(t)
				p, err := shared.startPeer(victim)
				require.NoError(t, err)
				defer p.stop()
				pc := p.client(t, servers)
				q := shared.peers[other(victim)][0]
				qc := q.client(t, servers)
				a, b := shared.name("a"), shared.name("b")
				p.do(t, "stand", a, pc, kind, "/e")
				p.do(t, "led", a)
				q.do(t, "stand", b, qc, kind, "/e")
				queued(t, below+"/e", 2)

				seen := make(chan string, 10)
				ctx, stop := context.WithTimeout(t.Context(), patience)
				defer stop()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					observe(ctx, kind, below+"/e", seen)
				}()
				require.Equal(t, a, <-seen)
				killed := time.Now()
				p.kill()
				q.do(t, "led", b)
				passed := time.Since(killed)
				t.Logf("passed on %v after the kill, session timeout %v", passed.Round(time.Millisecond), sessionTimeout)
				assert.LessOrEqual(t, passed, sessionTimeout+3*tick)
				require.Equal(t, b, <-seen)
				stop()
				<-ended
				q.do(t, "leave", b)
				nothingLeft(t, below)
			})
		}
	}
}

// observe tells the id of each leader.
func observe(ctx context.Context, kind, path string, seen chan<- string) {
	observations := leader.NewLatch(shared.admin, path).Observe(ctx)
	if kind == "selector" {
		observations = leader.NewSelector(shared.admin, path).Observe(ctx)
	}
	for o, err := range observations {
		switch {
		case err != nil:
			return
		case o.Leader != nil:
			seen <- o.Leader.ID
		}
	}
}
