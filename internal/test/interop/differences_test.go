//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/kit"
	"github.com/paddock-zk/paddock/recipes/leader"
	"github.com/paddock-zk/paddock/recipes/locks"
	zktest "github.com/paddock-zk/paddock/testing"
)

// while is how long a test waits to see that nothing happens.
const while = 3 * time.Second

// nothingHappens gives what shall not happen the time to happen.
func nothingHappens() { <-time.After(while) }

// A difference is what becomes of an election in one situation. Both sides say it in a
// few words, which docs/curator.md repeats.
type difference struct {
	situation     string
	curator, ours string // what is expected
	withCurator   func(t *testing.T) string
	withOurs      func(t *testing.T) string
}

// What goes wrong in elections of Curator is shown with Curator, and next to it what
// becomes of the same situation here.
func TestElectionsDiffer(t *testing.T) {
	page, err := os.ReadFile("../../../docs/curator.md")
	require.NoError(t, err)
	for _, d := range []difference{
		{
			"an operator deletes the leader's node",
			"goes on leading beside the next leader", "the term is lost at once",
			deletedWithCurator, deletedWithOurs,
		},
		{
			"the former leader writes",
			"the write is applied", "the servers refuse the transaction of the term",
			writesWithCurator, writesWithOurs,
		},
		{
			"the servers refuse the candidate's node",
			"waits without an error, also once it is allowed", "fails with `ErrNoAuth`, and leads once it is allowed",
			refusedWithCurator, refusedWithOurs,
		},
		{
			"a listener of the leader does not return",
			"`close` waits for it, and nobody else leads", "`Release` does not wait, and the next one leads",
			listenerWithCurator, listenerWithOurs,
		},
		{
			"the function goes on after the session has ended",
			"`hasLeadership` stays true, beside the next leader", "the term is lost, and the function is reported",
			stubbornWithCurator, stubbornWithOurs,
		},
		{
			"the function fails",
			"the candidate stands no more, and no call reports it", "the failure is reported, and the candidate stands again",
			failingWithCurator, failingWithOurs,
		},
		{
			"the next leader's connection breaks as it learns that it is first",
			"leads once it is connected again", "leads once it is connected again",
			cutWithCurator, cutWithOurs,
		},
	} {
		t.Run(strings.ReplaceAll(d.situation, " ", "_"), func(t *testing.T) {
			t.Parallel() // they wait most of the time
			t.Run("curator", func(t *testing.T) { assert.Equal(t, d.curator, d.withCurator(t)) })
			t.Run("ours", func(t *testing.T) { assert.Equal(t, d.ours, d.withOurs(t)) })
			row := fmt.Sprintf("| %s | %s | %s |\n", d.situation, d.curator, d.ours)
			assert.True(t, strings.Contains(string(page), row), "docs/curator.md does not say %q", row)
		})
	}
}

// deleteFirst deletes the node at the front of an election.
func deleteFirst(t *testing.T, c *framework.Client, path, kind string) {
	t.Helper()
	names, _, err := c.Children(t.Context(), path)
	require.NoError(t, err)
	first := ""
	for _, name := range names {
		if number := name[strings.LastIndex(name, kind)+len(kind):]; first == "" || number < first[strings.LastIndex(first, kind)+len(kind):] {
			first = name
		}
	}
	require.NoError(t, c.Delete(t.Context(), path+"/"+first, framework.AnyVersion))
}

// await has a candidate of ours lead.
func await(t *testing.T, c candidate) *leader.Term {
	t.Helper()
	term, err := c.Await(t.Context())
	require.NoError(t, err)
	return term
}

func ourLatch(c *framework.Client) *leader.Latch {
	return leader.NewLatch(c, "/e", leader.ReleaseWait(patient))
}

func ourClient(t *testing.T, servers string) *framework.Client {
	t.Helper()
	c, err := framework.Connect(t.Context(), framework.Config{ConnectString: servers, SessionTimeout: sessionTimeout})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// javaPair has one latch of Curator lead and another behind it.
func javaPair(t *testing.T, servers, kind, second string) (p, q *peer, a, b, pc string) {
	t.Helper()
	p, q = shared.peers["java"][0], shared.peers["java"][1]
	pc = p.client(t, servers)
	qc := q.client(t, servers)
	a, b = shared.name("a"), shared.name("b")
	p.do(t, "stand", a, pc, kind, "/e")
	p.do(t, "led", a)
	q.do(t, "stand", b, qc, second, "/e")
	return p, q, a, b, pc
}

func deletedWithCurator(t *testing.T) string {
	below, servers := chroot(t)
	p, q, a, b, _ := javaPair(t, servers, "latch", "latch")
	queued(t, below+"/e", 2)
	deleteFirst(t, shared.admin, below+"/e", "latch-")
	q.do(t, "led", b)
	nothingHappens()
	led := p.do(t, "leads", a)
	p.do(t, "leave", a)
	q.do(t, "leave", b)
	return map[string]string{"true": "goes on leading beside the next leader", "false": "does not lead any more"}[led]
}

func deletedWithOurs(t *testing.T) string {
	below, servers := chroot(t)
	c, d := ourClient(t, servers), ourClient(t, servers)
	term := await(t, ourLatch(c))
	next := make(chan *leader.Term, 1)
	go func() {
		second, _ := ourLatch(d).Await(t.Context())
		next <- second
	}()
	queued(t, below+"/e", 2)
	deleteFirst(t, shared.admin, below+"/e", "latch-")
	require.NoError(t, (<-next).Release())
	select {
	case <-term.Context().Done():
	case <-time.After(while):
	}
	if term.State() != locks.Lost {
		return term.State().String()
	}
	return "the term is lost at once"
}

func writesWithCurator(t *testing.T) string {
	below, servers := chroot(t)
	p, q, a, b, pc := javaPair(t, servers, "latch", "latch")
	queued(t, below+"/e", 2)
	deleteFirst(t, shared.admin, below+"/e", "latch-")
	q.do(t, "led", b)
	p.do(t, "put", pc, "/data", "late")
	p.do(t, "leave", a)
	q.do(t, "leave", b)
	return "the write is applied"
}

func writesWithOurs(t *testing.T) string {
	below, servers := chroot(t)
	c, d := ourClient(t, servers), ourClient(t, servers)
	term := await(t, ourLatch(c))
	late := term.Transaction() // begun while it leads
	late.Create("/data", []byte("late"), framework.Persistent)
	next := make(chan *leader.Term, 1)
	go func() {
		second, _ := ourLatch(d).Await(t.Context())
		next <- second
	}()
	queued(t, below+"/e", 2)
	deleteFirst(t, shared.admin, below+"/e", "latch-")
	second := <-next
	_, err := late.Commit(t.Context())
	there, _, readErr := d.Exists(t.Context(), "/data")
	require.NoError(t, readErr)
	require.NoError(t, second.Release())
	if !errors.Is(err, locks.ErrLockLost) || there {
		return fmt.Sprint(err, there)
	}
	return "the servers refuse the transaction of the term"
}

// closed makes the path of an election at which nobody may create anything.
func closed(t *testing.T, below string) {
	t.Helper()
	_, err := shared.admin.Create(t.Context(), below+"/e", nil, framework.Persistent, framework.ACLs(zk.WorldACL(zk.PermRead|zk.PermAdmin)...))
	require.NoError(t, err)
}

func open(t *testing.T, below string) {
	t.Helper()
	_, err := shared.admin.SetACL(t.Context(), below+"/e", zk.WorldACL(zk.PermAll), framework.AnyVersion)
	require.NoError(t, err)
}

func refusedWithCurator(t *testing.T) string {
	below, servers := chroot(t)
	closed(t, below)
	p := shared.peers["java"][0]
	c, a := p.client(t, servers), shared.name("a")
	p.do(t, "stand", a, c, "latch", "/e")
	led := p.begin("led", a)
	nothingHappens()
	led.pending(t, "it does not wait")
	open(t, below)
	nothingHappens()
	led.pending(t, "it leads once it is allowed")
	p.do(t, "leave", a)
	_, err := led.wait(patience)
	require.Error(t, err)
	return "waits without an error, also once it is allowed"
}

func refusedWithOurs(t *testing.T) string {
	below, servers := chroot(t)
	closed(t, below)
	l := ourLatch(ourClient(t, servers))
	_, err := l.Await(t.Context())
	if !errors.Is(err, framework.ErrNoAuth) {
		return fmt.Sprint(err)
	}
	open(t, below)
	require.NoError(t, await(t, l).Release())
	return "fails with `ErrNoAuth`, and leads once it is allowed"
}

func listenerWithCurator(t *testing.T) string {
	_, servers := chroot(t)
	p, q := shared.peers["java"][0], shared.peers["java"][1]
	pc, qc := p.client(t, servers), q.client(t, servers)
	a, b := shared.name("a"), shared.name("b")
	p.do(t, "stand", a, pc, "latch-slow", "/e")
	comesToLead(t, p, a) // which is said before the listener is called
	q.do(t, "stand", b, qc, "latch", "/e")
	leave, led := p.begin("leave", a), q.begin("led", b)
	nothingHappens()
	leave.pending(t, "close returns")
	led.pending(t, "the next one leads")
	return "`close` waits for it, and nobody else leads"
}

func listenerWithOurs(t *testing.T) string {
	_, servers := chroot(t)
	c, d := ourClient(t, servers), ourClient(t, servers)
	term := await(t, ourLatch(c))
	wake := make(chan struct{})
	defer close(wake)
	called := make(chan struct{}, 10)
	term.Hold().Listen(func(locks.HoldState) { called <- struct{}{}; <-wake })
	<-called
	require.NoError(t, term.Release())
	require.NoError(t, await(t, ourLatch(d)).Release())
	return "`Release` does not wait, and the next one leads"
}

// onOurServer is a server whose sessions can be ended, and whose connections cut.
func onOurServer(t *testing.T) *zktest.Server {
	t.Helper()
	return zktest.Start(t, zktest.Tick(tick))
}

func stubbornWithCurator(t *testing.T) string {
	srv := onOurServer(t)
	p, q, a, b, pc := javaPair(t, srv.ConnectString(), "selector-stubborn", "selector")
	require.NoError(t, srv.ExpireSession(sessionOf(t, p, pc)))
	q.do(t, "led", b)
	nothingHappens()
	led := p.do(t, "leads", a)
	p.do(t, "wake", a)
	p.do(t, "leave", a)
	q.do(t, "leave", b)
	return map[string]string{"true": "`hasLeadership` stays true, beside the next leader", "false": "does not lead any more"}[led]
}

// sessionOf is the session of a peer's client.
func sessionOf(t *testing.T, p *peer, client string) (id int64) {
	t.Helper()
	_, err := fmt.Sscan(p.do(t, "session", client), &id)
	require.NoError(t, err)
	return id
}

func stubbornWithOurs(t *testing.T) string {
	srv := onOurServer(t)
	c, d := ourClient(t, srv.ConnectString()), ourClient(t, srv.ConnectString())
	reported := make(chan error, 10)
	defer c.Errors().Listen(func(err error) { reported <- err })()
	wake, terms, ended := make(chan struct{}), make(chan *leader.Term, 10), make(chan error, 1)
	go func() {
		ended <- leader.NewSelector(c, "/e", leader.Grace(time.Second)).Run(t.Context(), func(_ context.Context, term *leader.Term) error {
			terms <- term
			<-wake
			return leader.ErrLeave
		})
	}()
	term := <-terms
	require.NoError(t, srv.ExpireSession(c.SessionID()))
	second := await(t, leader.NewSelector(d, "/e", leader.ReleaseWait(patient)))
	<-term.Context().Done()
	state := term.State()
	var overrun *leader.OverrunError
	for !errors.As(<-reported, &overrun) { // else go test ends it
	}
	close(wake)
	require.NoError(t, <-ended)
	require.NoError(t, second.Release())
	if state != locks.Lost || term.Context().Err() == nil {
		return state.String()
	}
	return "the term is lost, and the function is reported"
}

func failingWithCurator(t *testing.T) string {
	below, servers := chroot(t)
	p := shared.peers["java"][0]
	c, a := p.client(t, servers), shared.name("a")
	p.do(t, "stand", a, c, "selector-failing", "/e")
	p.do(t, "led", a)
	nothingHappens()
	names, _, err := shared.admin.Children(t.Context(), below+"/e")
	require.NoError(t, err)
	assert.Empty(t, names)
	assert.Equal(t, "false", p.do(t, "leads", a))
	p.do(t, "leave", a) // no error
	return "the candidate stands no more, and no call reports it"
}

func failingWithOurs(t *testing.T) string {
	_, servers := chroot(t)
	c := ourClient(t, servers)
	reported := make(chan error, 10)
	defer c.Errors().Listen(func(err error) { reported <- err })()
	terms := 0
	err := leader.NewSelector(c, "/e").Run(t.Context(), func(context.Context, *leader.Term) error {
		if terms++; terms > 1 {
			return leader.ErrLeave
		}
		return errors.New("it fails")
	})
	require.NoError(t, err)
	var failed *leader.FunctionError
	if !errors.As(<-reported, &failed) {
		return "is not reported"
	}
	return "the failure is reported, and the candidate stands again"
}

// comesToLead waits until a peer says that it leads.
func comesToLead(t *testing.T, p *peer, id string) {
	t.Helper()
	kit.Eventually(t, "it leads", func() error {
		if p.do(t, "leads", id) != "true" {
			return errors.New("it does not lead")
		}
		return nil
	})
}

// candidates waits for n candidates.
func candidates(t *testing.T, srv *zktest.Server, n int) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%d candidates", n), func() error {
		if all := srv.Ephemerals(0); len(all) != n {
			return fmt.Errorf("%q", all)
		}
		return nil
	})
}

// cutNext cuts a session's connection at its next request.
func cutNext(srv *zktest.Server, session int64) *zktest.Rule {
	return srv.On(zktest.Match{Session: session, Func: func(r zktest.Request) bool { return r.Op != "ping" }, Nth: 1}, zktest.CutBefore())
}

func cutWithCurator(t *testing.T) string {
	srv := onOurServer(t)
	p, q := shared.peers["java"][0], shared.peers["java"][1]
	a, b, c := shared.name("a"), shared.name("b"), shared.name("c")
	first, second, third := p.client(t, srv.ConnectString()), q.client(t, srv.ConnectString()), p.client(t, srv.ConnectString())
	p.do(t, "stand", a, first, "latch", "/e")
	p.do(t, "led", a)
	q.do(t, "stand", b, second, "latch", "/e")
	candidates(t, srv, 2)
	nothingHappens() // it watches the first
	p.do(t, "stand", c, third, "latch", "/e")
	candidates(t, srv, 3)
	cut := cutNext(srv, sessionOf(t, q, second))
	p.do(t, "leave", a)
	kit.Eventually(t, "somebody leads, and the connection was cut", func() error {
		if cut.Fired() == 0 || q.do(t, "leads", b) == p.do(t, "leads", c) {
			return errors.New("not yet")
		}
		return nil
	})
	leads := q.do(t, "leads", b) + " " + p.do(t, "leads", c)
	q.do(t, "leave", b)
	p.do(t, "leave", c)
	return map[string]string{"true false": "leads once it is connected again", "false true": "goes to the end, and the one behind it leads"}[leads]
}

func cutWithOurs(t *testing.T) string {
	srv := onOurServer(t)
	c, d, e := ourClient(t, srv.ConnectString()), ourClient(t, srv.ConnectString()), ourClient(t, srv.ConnectString())
	term := await(t, ourLatch(c))
	stand := func(c *framework.Client, n int) <-chan *leader.Term {
		next := make(chan *leader.Term, 1)
		go func() {
			term, _ := ourLatch(c).Await(t.Context())
			next <- term
		}()
		require.Eventually(t, func() bool {
			all, err := ourLatch(c).Participants(t.Context())
			return err == nil && len(all) == n
		}, patience, 10*time.Millisecond)
		return next
	}
	second, third := stand(d, 2), stand(e, 3)
	cutNext(srv, d.SessionID())
	require.NoError(t, term.Release())
	require.NoError(t, srv.Disconnect(d.SessionID()))
	next := <-second
	select {
	case <-third:
		return "the one behind it leads"
	default:
	}
	require.NoError(t, next.Release())
	require.NoError(t, (<-third).Release())
	return "leads once it is connected again"
}
