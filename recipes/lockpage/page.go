// Package lockpage serves a page about the locks of a client: its connection, what it
// holds, who waits, its caches and what other recipes show, and the queue of any lock as the servers have it. It is for people,
// as HTML that needs no script, and for programs, as JSON.
//
// Mount it where you like, beside net/http/pprof for example. Like pprof, it belongs
// where only operators can reach it: it shows what participants have written into
// their nodes.
//
//	mux.Handle("/debug/locks", lockpage.Handler(client))
package lockpage

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/monitor"
	"github.com/paddock-zk/paddock/internal/lockview"
	"github.com/paddock-zk/paddock/internal/session"
)

// Option changes a page.
type Option func(*page)

// AllowBreak lets people take a lock from its holder, by deleting a node. The page calls
// allowed for each such request, to learn whether this user may do it. Many goroutines
// may call it at once. Without this option the page only reads. A nil function allows
// nobody.
//
// Such a request is a POST. The page refuses it if it comes from another site, by the
// rules of http.CrossOriginProtection, or if it lacks the token of the form, which
// another site cannot know. Several replicas behind one address take the forms of each
// other.
func AllowBreak(allowed func(*http.Request) bool) Option {
	return func(p *page) { p.allowed = allowed }
}

// TrustOrigin makes an origin such as "https://ops.example.com" ours. The page needs it
// behind a proxy that changes the header Host, where a browser says nothing else of whose
// page a form is: over plain HTTP. It panics if that is no origin.
func TrustOrigin(origin string) Option {
	return func(p *page) {
		if err := p.origin.AddTrustedOrigin(origin); err != nil {
			panic("lockpage: TrustOrigin: " + err.Error())
		}
	}
}

// Remember makes the page show what a History remembers, which has to be a tracer of the
// client.
func Remember(h *History) Option {
	return func(p *page) { p.history = h }
}

// LinkTo links participants to pages of theirs. The page calls address with what a
// participant has written into its node, and links to the http or https address that it
// returns; "" is no link. Many goroutines may call it at once. Participants write what they
// like, so address should return addresses of known hosts only.
func LinkTo(address func(participant string) string) Option {
	return func(p *page) { p.address = address }
}

// askTime bounds how long the servers are waited for.
const askTime = 10 * time.Second

// pageSize is how many holds, waiters or participants are on one page.
const pageSize = 100

type page struct {
	client  *framework.Client
	allowed func(*http.Request) bool
	origin  *http.CrossOriginProtection
	history *History // nil for none
	address func(participant string) string
}

// Handler is the page of a client. These are its addresses, by the query:
//
//   - none: the connection, the holds (the oldest first) and the waiters, a hundred on a
//     page: holds=2 is the second page of holds, waiters=2 that of waiters, entries=2 that of
//     what other recipes show, if there is any. filter=orders shows
//     those with this in their path, kind or participant, and sort=waiters or sort=path orders
//     the holds. The page asks the servers who waits behind each, and who has what is waited
//     for, many with each request; it waits two seconds for them at most.
//   - path=/locks/orders: the queue of the lock or the election there, a hundred on a page:
//     places=2 is the second. leases=3 says that it is a semaphore with three leases, which
//     the nodes do not show.
//   - format=json: the same as JSON, with all holds, waiters, entries and participants. An Accept header that
//     asks for application/json does the same.
//   - refresh=5: the page loads itself again every five seconds.
//
// Paths in queries are those of the client: below its chroot and its namespace. Those of
// holds and waiters are in full, as logs have them, and link to the queue.
//
// It answers 400 to a wrong query, 404 to a path that is not there, and 409 to one that is
// no lock's. A break that is not allowed gets 403. While no server can be asked, a queue
// gets 503. Handler panics if an option is nil.
func Handler(c *framework.Client, opts ...Option) http.Handler {
	p := &page{client: c, origin: http.NewCrossOriginProtection()}
	for _, opt := range opts {
		if opt == nil {
			panic("lockpage: option is nil")
		}
		opt(p)
	}
	return p
}

//go:embed page.html
var source string

//go:embed page.css
var style string

// policy lets a browser load and run nothing, but for our own style.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

var templates = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":   func() template.CSS { return template.CSS(style) }, //nolint:gosec // it is ours
	"text":    lockview.Printable,
	"excerpt": func(data lockview.Text) string { return lockview.Excerpt(data) },
	"brief":   func(s string) string { return lockview.Excerpt([]byte(s)) },
	"session": func(id int64) string { return lockview.SessionID(id).String() },
	"age":     func(since time.Time) string { return lockview.Age(time.Since(since)) },
	"span":    func(d time.Duration) string { return lockview.Age(d) },
	"clock":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"sum":     func(a, b int) int { return a + b },
	"list":    func(paths []string) string { return lockview.Excerpt([]byte(strings.Join(paths, ", "))) },
}).Parse(source))

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	switch {
	case r.Method == http.MethodPost:
		p.serveBreak(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD, POST")
		p.fail(w, r, http.StatusMethodNotAllowed, errors.New("only GET, HEAD and POST are understood"))
	case r.URL.Query().Get("path") != "":
		p.serveQueue(w, r)
	default:
		p.serveClient(w, r)
	}
}

// view is what the template shows.
type view struct {
	Title   string
	Refresh int // seconds, 0 for never
	Now     time.Time
	Error   string
	Done    string // what was done
	Client  *clientView
	Queue   *queueView
}

// clientView is the connection, and what is held and waited for.
type clientView struct {
	Stats         monitor.Stats
	Connected     bool
	LastError     string
	Filter, Sort  string
	Holds         part[hold]
	Waiters       part[waiter]
	Entries       part[monitor.Entry]
	Losses, Waits []event
	Remembers     bool
	Unasked       string // why the servers did not say who waits
	core          session.Core
}

// Page is where other pages of holds and waiters are, with the same filter and order.
func (v *clientView) Page(list string, n int) string {
	q := url.Values{list: {strconv.Itoa(n)}}
	for name, value := range map[string]string{"filter": v.Filter, "sort": v.Sort} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "?" + q.Encode()
}

// hold is a row of the page.
type hold struct {
	monitor.HoldInfo
	Held, Lease int  // lengths of its bars, of 100
	Asked       bool // Behind is known
	Behind      int  // who waits, of all clients
}

// waiter is a row of the page.
type waiter struct {
	monitor.WaiterInfo
	Holder, Address string // who has the lock, and where its page is; "" if that is not known
}

// Link is where the queue of a lock is, whose path is given in full.
func (v *clientView) Link(full string) string {
	return "?path=" + url.QueryEscape(v.core.Relative(full))
}

// part is one page of a list.
type part[E any] struct {
	List            []E
	Total, From, To int
	Current         int // this page
	Before, After   int // the pages before and behind, 0 for none
}

// cut is a page of a list, from 1.
func cut[E any](all []E, n int) part[E] {
	last := max(1, (len(all)+pageSize-1)/pageSize)
	n = min(n, last)
	from := (n - 1) * pageSize
	to := min(from+pageSize, len(all))
	p := part[E]{List: all[from:to], Total: len(all), From: min(from+1, to), To: to, Current: n, Before: n - 1}
	if n < last {
		p.After = n + 1
	}
	return p
}

// number is a whole number above 0 in a query.
func number(q url.Values, name string, preset int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return preset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1e6 {
		return 0, fmt.Errorf("%s is %q: it must be a number above 0", name, text)
	}
	return n, nil
}

// clientJSON is what programs get of a client.
type clientJSON struct {
	State       string             `json:"state"`
	Since       time.Time          `json:"since"`
	Server      string             `json:"server"`
	Session     lockview.SessionID `json:"session"`
	Timeout     float64            `json:"timeout_seconds"`
	LeaseLeft   float64            `json:"lease_left_seconds"`
	LastError   string             `json:"last_error,omitempty"`
	Certificate *certificateJSON   `json:"certificate,omitempty"`
	HoldsList   []heldJSON         `json:"holds"`
	WaitersList []waiterJSON       `json:"waiters"`
	EntriesList []entryJSON        `json:"entries"`
}

type certificateJSON struct {
	Subject string    `json:"subject"`
	Until   time.Time `json:"until"`
}

type entryJSON struct {
	Kind    string           `json:"kind"`
	Path    string           `json:"path"`
	State   string           `json:"state"`
	Since   time.Time        `json:"since,omitzero"`
	Behind  string           `json:"behind,omitempty"`
	Error   string           `json:"error,omitempty"`
	Numbers map[string]int64 `json:"numbers,omitempty"`
	Note    string           `json:"note,omitempty"`
}

func entryOf(e monitor.Entry) entryJSON {
	out := entryJSON{e.Kind, e.Path, e.State, e.Since.UTC(), e.Behind, "", e.Numbers, e.Note}
	if e.Err != nil {
		out.Error = e.Err.Error()
	}
	return out
}

type lockJSON struct {
	Kind        string        `json:"kind"`
	Path        string        `json:"path"`
	Node        string        `json:"node,omitempty"`
	Token       int64         `json:"token,omitempty"`
	Participant lockview.Text `json:"participant"`
	Since       time.Time     `json:"since"`
}

type heldJSON struct {
	lockJSON
	Session   lockview.SessionID `json:"session"`
	Holds     int                `json:"holds"`
	Uncertain bool               `json:"uncertain"`
	MultiLock bool               `json:"multilock"`
}

type waiterJSON struct {
	lockJSON
	Local  bool   `json:"local"`
	Ahead  int    `json:"ahead"`
	Behind string `json:"behind,omitempty"`
	// Of a MultiLock.
	Has   []string `json:"has,omitempty"`
	Wants []string `json:"wants,omitempty"`
}

func lockOf(l monitor.Lock, since time.Time) lockJSON {
	return lockJSON{Kind: l.Kind, Path: l.Path, Node: l.Node, Token: l.Token, Participant: lockview.Text(l.Participant), Since: since.UTC()}
}

func (p *page) serveClient(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	holdsPage, err1 := number(q, "holds", 1)
	waitersPage, err2 := number(q, "waiters", 1)
	entriesPage, err3 := number(q, "entries", 1)
	if err := errors.Join(err1, err2, err3); err != nil {
		p.fail(w, r, http.StatusBadRequest, err)
		return
	}
	filter, order := q.Get("filter"), q.Get("sort")
	if order != "" && order != "waiters" && order != "path" {
		p.fail(w, r, http.StatusBadRequest, fmt.Errorf("sort is %q: it must be waiters or path", order))
		return
	}
	stats, holds, waiters, entries := p.client.Stats(), p.client.Holds(), p.client.Waiters(), p.client.Entries()
	holds = slices.DeleteFunc(holds, func(h monitor.HoldInfo) bool { return !has(h.Lock, filter) })
	waiters = slices.DeleteFunc(waiters, func(one monitor.WaiterInfo) bool { return !has(one.Lock, filter) })
	entries = slices.DeleteFunc(entries, func(e monitor.Entry) bool {
		return !strings.Contains(e.Path, filter) && !strings.Contains(e.Kind, filter)
	})
	slices.SortFunc(holds, func(a, b monitor.HoldInfo) int { return a.Since.Compare(b.Since) })
	slices.SortStableFunc(waiters, func(a, b monitor.WaiterInfo) int { return a.Since.Compare(b.Since) })
	lastError := ""
	if stats.LastError != nil {
		lastError = stats.LastError.Error()
	}
	if wantsJSON(r) {
		out := clientJSON{
			State: stats.State.String(), Since: stats.Since.UTC(), Server: stats.Server, Session: lockview.SessionID(stats.Session),
			Timeout: stats.Timeout.Seconds(), LeaseLeft: stats.LeaseLeft.Seconds(), LastError: lastError,
			HoldsList: make([]heldJSON, 0, len(holds)), WaitersList: make([]waiterJSON, 0, len(waiters)),
			EntriesList: make([]entryJSON, 0, len(entries)),
		}
		if own := stats.Certificate; own != nil {
			out.Certificate = &certificateJSON{own.Subject, own.Until.UTC()}
		}
		for _, h := range holds {
			out.HoldsList = append(out.HoldsList, heldJSON{lockOf(h.Lock, h.Since), lockview.SessionID(h.Session), h.Holds, h.Uncertain, h.MultiLock})
		}
		for _, one := range waiters {
			out.WaitersList = append(out.WaitersList, waiterJSON{lockOf(one.Lock, one.Since), one.Local, one.Ahead, one.Behind, one.Has, one.Wants})
		}
		for _, e := range entries {
			out.EntriesList = append(out.EntriesList, entryOf(e))
		}
		writeJSON(w, http.StatusOK, out)
		return
	}
	v := &clientView{
		Entries: cut(entries, entriesPage),
		Stats:   stats, Connected: stats.State.IsConnected(), LastError: lastError, Filter: filter, Sort: order,
	}
	v.core, _ = p.client.Core(session.Key{})
	if p.history != nil {
		v.Remembers = true
		v.Losses, v.Waits = p.history.latest()
	}
	p.fill(r.Context(), v, holds, waiters, holdsPage, waitersPage)
	p.render(w, r, http.StatusOK, view{Title: "Locks of this client", Client: v})
}

// has is whether a lock is among those that a filter asks for.
func has(l monitor.Lock, filter string) bool {
	return strings.Contains(l.Path, filter) || strings.Contains(l.Kind, filter) || strings.Contains(l.Participant, filter)
}

// glance bounds how long the servers are waited for by a page that is of use without them.
const glance = 2 * time.Second

// fill makes the rows of a page.
func (p *page) fill(ctx context.Context, v *clientView, holds []monitor.HoldInfo, waiters []monitor.WaiterInfo, holdsPage, waitersPage int) {
	now, longest := time.Now(), time.Duration(1)
	rows := make([]hold, len(holds))
	for i, h := range holds {
		longest = max(longest, now.Sub(h.Since))
		rows[i].HoldInfo = h
	}
	for i := range rows {
		rows[i].Held = share(now.Sub(rows[i].Since), longest)
		rows[i].Lease = share(v.Stats.LeaseLeft, v.Stats.Timeout)
	}
	if v.Sort == "path" {
		slices.SortStableFunc(rows, func(a, b hold) int { return strings.Compare(a.Lock.Path, b.Lock.Path) })
	}
	asked := rows // all of them, if who waits decides which are shown
	if v.Sort != "waiters" {
		asked = cut(rows, holdsPage).List
	}
	shown := cut(waiters, waitersPage)
	v.Waiters = part[waiter]{Total: shown.Total, From: shown.From, To: shown.To, Current: shown.Current, Before: shown.Before, After: shown.After}
	for _, one := range shown.List {
		v.Waiters.List = append(v.Waiters.List, waiter{WaiterInfo: one})
	}
	p.ask(ctx, v, asked, v.Waiters.List)
	if v.Sort == "waiters" {
		slices.SortStableFunc(rows, func(a, b hold) int { return cmp.Compare(b.Behind, a.Behind) })
	}
	v.Holds = cut(rows, holdsPage)
}

// share is a part of a whole, of 100.
func share(a, whole time.Duration) int {
	return int(100 * min(1, max(0, a.Seconds()/max(1e-9, whole.Seconds()))))
}

// ask asks the servers who waits behind holds, and who has what waiters wait for.
func (p *page) ask(ctx context.Context, v *clientView, holds []hold, waiters []waiter) {
	known := make(map[string]*lockview.Lock)
	for _, h := range holds {
		known[v.core.Relative(h.Lock.Path)] = nil
	}
	for _, one := range waiters {
		known[v.core.Relative(one.Lock.Path)] = nil
	}
	if len(known) == 0 {
		return
	}
	if !v.Connected {
		v.Unasked = "not connected"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	survey, err := lockview.LocksAt(ctx, p.client, slices.Sorted(maps.Keys(known)))
	if err != nil {
		v.Unasked = err.Error()
		return
	}
	for i := range survey.Locks {
		known[survey.Locks[i].Path] = &survey.Locks[i]
	}
	for i := range holds {
		if l := known[v.core.Relative(holds[i].Lock.Path)]; l != nil {
			holds[i].Asked, holds[i].Behind = true, l.Waits
		}
	}
	for i := range waiters {
		if l := known[v.core.Relative(waiters[i].Lock.Path)]; l != nil {
			waiters[i].Holder = string(l.Holder)
			if p.address != nil {
				waiters[i].Address = p.address(waiters[i].Holder)
			}
		}
	}
}

// queueView is the queue of one lock.
type queueView struct {
	*lockview.Queue
	address  func(participant string) string
	Leads    string // what holders do: hold or lead
	MayBreak bool
	Token    string // of the form that breaks
	Leases   int
	Places   part[lockview.Participant]
}

// Address is where the page of a participant is, "" if that is not known.
func (v *queueView) Address(data lockview.Text) string {
	if v.address == nil {
		return ""
	}
	return v.address(string(data))
}

// Page is where another page of the queue is.
func (v *queueView) Page(n int) string {
	q := url.Values{"path": {v.Path}}
	if n > 1 {
		q.Set("places", strconv.Itoa(n))
	}
	if v.Leases > 0 {
		q.Set("leases", strconv.Itoa(v.Leases))
	}
	return "?" + q.Encode()
}

func (p *page) serveQueue(w http.ResponseWriter, r *http.Request) {
	places, err := number(r.URL.Query(), "places", 1)
	if err != nil {
		p.fail(w, r, http.StatusBadRequest, err)
		return
	}
	q, leases, status, err := p.look(r.Context(), r.URL.Query())
	if err != nil {
		p.fail(w, r, status, err)
		return
	}
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, q)
		return
	}
	v := &queueView{Queue: q, address: p.address, Leads: q.Kind.Words(true), Leases: leases, Places: cut(q.Participants, places)}
	if v.MayBreak = p.mayBreak(r); v.MayBreak {
		v.Token = issue(w, r)
	}
	p.render(w, r, http.StatusOK, view{Title: lockview.Printable(q.Path), Queue: v, Done: lockview.Printable(r.URL.Query().Get("deleted"))})
}

// look reads the queue that a query names.
func (p *page) look(ctx context.Context, query url.Values) (q *lockview.Queue, leases, status int, err error) {
	path := query.Get("path")
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	leases, err = number(query, "leases", 0)
	if err == nil {
		err = framework.ValidatePath(path)
	}
	if err != nil {
		return nil, 0, http.StatusBadRequest, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	q, err = lockview.Look(ctx, p.client, path, leases)
	return q, leases, statusOf(err), err
}

// statusOf is the status that an error is answered with.
func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, framework.ErrNoNode):
		return http.StatusNotFound
	case errors.Is(err, lockview.ErrNoLock):
		return http.StatusConflict
	case errors.Is(err, framework.ErrNoAuth):
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}

func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json")
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who has gone away does not want to know
}

// render writes a page.
func (p *page) render(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.Now = time.Now()
	if n, err := number(r.URL.Query(), "refresh", 0); err == nil && r.Method == http.MethodGet {
		v.Refresh = n
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = templates.Execute(w, v) // the same
}

// fail says what is wrong.
func (p *page) fail(w http.ResponseWriter, r *http.Request, status int, err error) {
	if wantsJSON(r) {
		writeJSON(w, status, map[string]string{"error": err.Error()})
		return
	}
	p.render(w, r, status, view{Title: http.StatusText(status), Error: lockview.Printable(err.Error())})
}
