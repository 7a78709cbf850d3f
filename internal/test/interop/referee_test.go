package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// referee knows who is inside what. Each worker has a connection to it. A worker
// sends the line "enter RESOURCE KIND LANGUAGE" after it has acquired a lock, and
// "leave ..." before it gives the lock back. It goes on once the witness has
// answered. KIND is "shared" or how many may be inside. The answer to the line "hold" comes
// after heldFor: so workers of all languages hold locks for one time, whatever their timers do.
//
// A worker whose connection ends is inside no longer: its process was killed.
type referee struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	conns     map[net.Conn]bool
	resources map[string]*resource
	wrong     []string
	changed   chan struct{} // closed at the next enter
}

// resource is what one lock protects.
type resource struct {
	shared, counted int
	last            string                 // the language of who entered last
	rounds          int                    // enters
	handovers       map[[2]string]int      // from the last one's language to the next one's
	together        map[string]int         // most at a time, by kind
	mixed           bool                   // two languages were inside at once
	inside          map[string]int         // by language
	holders         map[net.Conn][]visitor // to be forgotten with their connections
}

const heldFor = 5 * time.Millisecond

type visitor struct{ kind, language string }

func newReferee() (*referee, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &referee{listener: l, conns: make(map[net.Conn]bool), resources: make(map[string]*resource), changed: make(chan struct{})}
	w.wg.Go(w.serve)
	return w, nil
}

func (w *referee) addr() string { return w.listener.Addr().String() }

func (w *referee) serve() {
	for {
		conn, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.conns[conn] = true
		w.mu.Unlock()
		w.wg.Go(func() { w.hear(conn) })
	}
}

func (w *referee) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.mu.Unlock()
	w.wg.Wait()
}

func (w *referee) hear(conn net.Conn) {
	defer w.gone(conn)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "hold" {
			<-time.After(heldFor)
		} else if err := w.note(conn, lines.Text()); err != nil {
			_, _ = fmt.Fprintln(conn, err)
			return
		}
		if _, err := io.WriteString(conn, "noted\n"); err != nil {
			return
		}
	}
}

func (w *referee) gone(conn net.Conn) {
	_ = conn.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, conn)
	for _, r := range w.resources {
		for _, v := range r.holders[conn] {
			r.count(v, -1)
		}
		delete(r.holders, conn)
	}
}

func (r *resource) count(v visitor, by int) {
	if v.kind == "shared" {
		r.shared += by
	} else {
		r.counted += by
	}
	r.inside[v.language] += by
}

// note takes in one line.
func (w *referee) note(conn net.Conn, line string) error {
	f := strings.Fields(line)
	if len(f) != 4 {
		return fmt.Errorf("cannot read %q", line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.resourceLocked(f[1])
	v := visitor{kind: f[2], language: f[3]}
	switch f[0] {
	case "enter":
		if what := r.enter(v); what != "" {
			w.wrong = append(w.wrong, fmt.Sprintf("%s: %s enters beside %s", f[1], v.language, what))
		}
		r.holders[conn] = append(r.holders[conn], v)
		close(w.changed)
		w.changed = make(chan struct{})
	case "leave":
		i := slices.Index(r.holders[conn], v)
		if i < 0 {
			return errors.New("who leaves was not inside")
		}
		r.holders[conn] = slices.Delete(r.holders[conn], i, i+1)
		r.count(v, -1)
	default:
		return fmt.Errorf("cannot read %q", line)
	}
	return nil
}

func (w *referee) resourceLocked(name string) *resource {
	r := w.resources[name]
	if r == nil {
		r = &resource{handovers: make(map[[2]string]int), together: make(map[string]int), inside: make(map[string]int), holders: make(map[net.Conn][]visitor)}
		w.resources[name] = r
	}
	return r
}

// enter lets a visitor in and says who is inside that must not be.
func (r *resource) enter(v visitor) (beside string) {
	r.count(v, 1)
	limit, err := strconv.Atoi(v.kind)
	switch {
	case err == nil && r.counted > limit, err == nil && r.shared > 0, err != nil && r.counted > 0:
		beside = fmt.Sprintf("%d, %d shared: %v", r.counted, r.shared, r.inside)
	}
	if r.last != "" {
		r.handovers[[2]string{r.last, v.language}]++
	}
	r.last = v.language
	r.rounds++
	r.together[v.kind] = max(r.together[v.kind], r.counted, r.shared)
	languages := 0
	for _, n := range r.inside {
		if n > 0 {
			languages++
		}
	}
	r.mixed = r.mixed || languages > 1
	return beside
}

// violations is what was seen and must not be.
func (w *referee) violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// roundCounts is what was counted at one resource.
type roundCounts struct {
	rounds    int
	handovers map[[2]string]int
	together  map[string]int
	mixed     bool
}

func (t roundCounts) between(from, to string) int { return t.handovers[[2]string{from, to}] }

func (w *referee) counts(name string) roundCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.resourceLocked(name)
	t := roundCounts{rounds: r.rounds, handovers: make(map[[2]string]int), together: make(map[string]int), mixed: r.mixed}
	for k, n := range r.handovers {
		t.handovers[k] = n
	}
	for k, n := range r.together {
		t.together[k] = n
	}
	return t
}

// until waits until enough was counted at a resource.
func (w *referee) until(ctx context.Context, name string, enough func(roundCounts) bool) error {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		t := w.counts(name)
		if enough(t) || len(w.violations()) > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w, with %d rounds at %s, handed over %v", context.Cause(ctx), t.rounds, name, t.handovers)
		}
	}
}

// refereeConn is a worker's connection to the witness.
type refereeConn struct {
	conn net.Conn
	in   *bufio.Reader
}

func callWitness(ctx context.Context, addr string) (*refereeConn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &refereeConn{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (l *refereeConn) tell(format string, args ...any) error {
	if _, err := fmt.Fprintf(l.conn, format+"\n", args...); err != nil {
		return err
	}
	answer, err := l.in.ReadString('\n')
	if err == nil && answer != "noted\n" {
		err = fmt.Errorf("witness: %s", strings.TrimSpace(answer))
	}
	return err
}

func (l *refereeConn) close() { _ = l.conn.Close() }

// The witness is shown what it must not stay silent about.
func TestWitness(t *testing.T) {
	for _, tc := range []struct {
		name   string
		script []string // "worker line"
		wrong  int
	}{
		{"one after another", []string{"a enter /x 1 go", "a leave /x 1 go", "b enter /x 1 java", "b leave /x 1 java"}, 0},
		{"two at once", []string{"a enter /x 1 go", "b enter /x 1 java"}, 1},
		{"two at once elsewhere", []string{"a enter /x 1 go", "b enter /y 1 java"}, 0},
		{"readers", []string{"a enter /x shared go", "b enter /x shared java"}, 0},
		{"writer beside reader", []string{"a enter /x shared go", "b enter /x 1 java"}, 1},
		{"reader beside writer", []string{"a enter /x 1 go", "b enter /x shared java"}, 1},
		{"leases", []string{"a enter /x 2 go", "b enter /x 2 java"}, 0},
		{"a lease too many", []string{"a enter /x 2 go", "b enter /x 2 java", "b enter /x 2 java"}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, err := newReferee()
			require.NoError(t, err)
			defer w.close()
			lines := make(map[string]*refereeConn)
			for _, s := range tc.script {
				who, text, _ := strings.Cut(s, " ")
				if lines[who] == nil {
					lines[who], err = callWitness(t.Context(), w.addr())
					require.NoError(t, err)
					defer lines[who].close()
				}
				require.NoError(t, lines[who].tell("%s", text))
			}
			assert.Len(t, w.violations(), tc.wrong)
		})
	}
}

func TestWitnessCountsAndForgets(t *testing.T) {
	w, err := newReferee()
	require.NoError(t, err)
	defer w.close()
	a, err := callWitness(t.Context(), w.addr())
	require.NoError(t, err)
	b, err := callWitness(t.Context(), w.addr())
	require.NoError(t, err)
	defer b.close()
	require.Error(t, b.tell("leave /x 1 java"), "was not inside")
	b, err = callWitness(t.Context(), w.addr())
	require.NoError(t, err)
	defer b.close()
	require.NoError(t, a.tell("enter /x 1 go"))
	a.close() // killed inside
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.resources["/x"].counted == 0
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, b.tell("enter /x 1 java"))
	require.NoError(t, w.until(t.Context(), "/x", func(t roundCounts) bool { return t.rounds == 2 }))
	assert.Equal(t, 1, w.counts("/x").between("go", "java"))
	assert.Empty(t, w.violations())
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, w.until(ctx, "/x", func(roundCounts) bool { return false }), context.DeadlineExceeded)
}
