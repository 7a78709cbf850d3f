package check

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

// good is a record in which everything was kept.
func good() *Record {
	node := func(path string, owner int64) Change { return Change{Kind: Created, Path: path, Owner: owner} }
	gone := func(path string) Change { return Change{Kind: Deleted, Path: path} }
	return &Record{
		Timeout: time.Second, Healed: 100 * ms, Forced: map[int64]time.Duration{},
		Locks: []Lock{{Path: "/m", Kind: Mutex}, {Path: "/w", Kind: ReadWrite}, {Path: "/s", Kind: Semaphore, Permits: 2}, {Path: "/e", Kind: Election}},
		Over:  7 * time.Second,
		Log: []Txn{
			{Zxid: 1, At: 1 * ms, Session: 1, Changes: []Change{node("/m/_c_b-lock-0000000000", 1)}},
			{Zxid: 2, At: 2 * ms, Session: 2, Changes: []Change{node("/m/_c_a-lock-0000000001", 2)}},
			{Zxid: 3, At: 4 * ms, Session: 1, Changes: []Change{{Kind: DataSet, Path: "/data", Data: "w1"}}},
			{Zxid: 4, At: 10 * ms, Session: 1, Changes: []Change{gone("/m/_c_b-lock-0000000000")}},
			{Zxid: 5, At: 20 * ms, Session: 2, Changes: []Change{gone("/m/_c_a-lock-0000000001")}},
			{Zxid: 6, At: 21 * ms, Session: 1, Changes: []Change{node("/w/x__WRIT__0000000000", 1)}},
			{Zxid: 7, At: 23 * ms, Session: 1, Changes: []Change{node("/w/y__READ__0000000000", 1)}}, // downgraded
			{Zxid: 8, At: 24 * ms, Session: 1, Changes: []Change{gone("/w/x__WRIT__0000000000")}},
			{Zxid: 9, At: 25 * ms, Session: 2, Changes: []Change{node("/w/z__WRIT__0000000001", 2)}},
			{Zxid: 10, At: 30 * ms, Session: 1, Changes: []Change{gone("/w/y__READ__0000000000")}},
			{Zxid: 11, At: 40 * ms, Session: 1, Changes: []Change{node("/s/leases/x-lease-0000000000", 1), node("/s/leases/y-lease-0000000001", 1)}},
			{Zxid: 12, At: 41 * ms, Session: 2, Changes: []Change{node("/s/leases/z-lease-0000000002", 2)}},
			{Zxid: 13, At: 50 * ms, Session: 1, Changes: []Change{gone("/s/leases/x-lease-0000000000")}},
			{Zxid: 14, At: 60 * ms, Session: 3, Changes: []Change{node("/e/_c_x-latch-0000000000", 3)}},
			{Zxid: 15, At: 70 * ms, Session: 4, Changes: []Change{node("/e/_c_a-latch-0000000001", 4)}},
			{Zxid: 16, At: 3 * time.Second, Session: 3, Changes: []Change{gone("/e/_c_x-latch-0000000000")}},
			{Zxid: 17, At: 4 * time.Second, Session: 4, Changes: []Change{gone("/e/_c_a-latch-0000000001")}},
		},
		Holds: []Hold{
			{Owner: 1, Lock: "/m", Mode: Alone, Node: "/m/_c_b-lock-0000000000", Session: 1, Token: 1, Granted: 3 * ms, Ended: 9 * ms},
			{Owner: 2, Lock: "/m", Mode: Alone, Node: "/m/_c_a-lock-0000000001", Session: 2, Token: 2, Granted: 11 * ms, Ended: 19 * ms},
			{Owner: 3, Lock: "/w", Mode: Alone, Node: "/w/x__WRIT__0000000000", Session: 1, Token: 6, Granted: 22 * ms, Ended: 24 * ms},
			{Owner: 3, Lock: "/w", Mode: Shared, Node: "/w/y__READ__0000000000", Session: 1, Granted: 23 * ms, Ended: 29 * ms},
			{Owner: 4, Lock: "/w", Mode: Alone, Node: "/w/z__WRIT__0000000001", Session: 2, Token: 9, Granted: 31 * ms, Ended: Never},
			{Owner: 5, Lock: "/s", Mode: Lease, Node: "/s/leases/x-lease-0000000000", Session: 1, Granted: 42 * ms, Ended: 49 * ms},
			{Owner: 5, Lock: "/s", Mode: Lease, Node: "/s/leases/y-lease-0000000001", Session: 1, Granted: 42 * ms, Ended: 60 * ms},
			{Owner: 6, Lock: "/s", Mode: Lease, Node: "/s/leases/z-lease-0000000002", Session: 2, Granted: 51 * ms, Ended: 60 * ms},
			{Owner: 7, Lock: "/e", Mode: Alone, Node: "/e/_c_x-latch-0000000000", Session: 3, Token: 14, Granted: 61 * ms, Ended: 2999 * ms, ContextsEnded: 2999 * ms},
			{Owner: 8, Lock: "/e", Mode: Alone, Node: "/e/_c_a-latch-0000000001", Session: 4, Token: 15, Granted: 3001 * ms, Ended: 4000 * ms, ContextsEnded: 4000 * ms},
		},
		Writes: []Write{{ID: "w1", Path: "/data", Nodes: []string{"/m/_c_b-lock-0000000000"}, Fenced: true, Outcome: Done}},
		Waits: []Wait{
			{Began: 1 * ms, Returned: 3 * ms, Limit: Never, OK: true},
			{Began: 1 * ms, Returned: 50 * ms, Limit: 50 * ms},
			{Began: 90 * ms, Returned: 3 * time.Second, Limit: Never, OK: true},
		},
	}
}

func found(rec *Record) (names []string) {
	for _, j := range All {
		if len(j.Of(rec)) > 0 {
			names = append(names, j.Name)
		}
	}
	return names
}

func TestGood(t *testing.T) {
	assert.Empty(t, found(good()))
	assert.Zero(t, StaleWrites(good()))
	assert.Equal(t, 2900*ms, Recovery(good()))
	assert.Zero(t, LongestYield(good()))
	passed := letsPass()
	assert.Empty(t, found(passed), "others were let pass")
	assert.Equal(t, 5000*ms, LongestYield(passed))
}

// letsPass is a record in which one waits as long as it may while others are
// served.
func letsPass() *Record {
	r := good()
	w := &r.Waits[2]
	w.Returned, w.Yields = 8100*ms, true
	r.Waits = append(r.Waits,
		Wait{Began: 2900 * ms, Returned: 3100 * ms, Limit: Never, OK: true, Yields: true},
		Wait{Began: 6000 * ms, Returned: 6100 * ms, Limit: Never, OK: true, Yields: true})
	return r
}

// Each checker turns red by a single fault, and only those that it concerns do.
func TestEachJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(r *Record)
		want  []string
	}{
		"granted behind another": {func(r *Record) { r.Holds[1].Granted = 9 * ms }, []string{"front"}},
		"no such node":           {func(r *Record) { r.Holds[0].Node = "/m/_c_c-lock-0000000000" }, []string{"front"}},
		"another session's node": {func(r *Record) { r.Holds[0].Session = 7 }, []string{"front"}},
		"one number twice": {func(r *Record) {
			r.Log[1].Changes[0].Path = "/m/_c_a-lock-0000000000"
			r.Holds = r.Holds[8:]
			r.Writes = nil
		}, []string{"front"}},
		"believes on":                   {func(r *Record) { r.Holds[0].Ended = 12 * ms }, []string{"held at once"}},
		"its contexts go on":            {func(r *Record) { r.Holds[0].ContextsEnded = 11 * ms }, []string{"contexts"}},
		"reads beside a writer":         {func(r *Record) { r.Holds[3].Ended = 32 * ms }, []string{"readers and writers"}},
		"one lease too many":            {func(r *Record) { r.Holds[5].Ended = 52 * ms }, []string{"permits"}},
		"a token of its own":            {func(r *Record) { r.Holds[1].Token = 5 }, []string{"tokens"}},
		"a token that falls":            {func(r *Record) { r.Holds[1].Token = 1 }, []string{"tokens"}},
		"written when it was gone":      {func(r *Record) { r.Log[2], r.Log[3] = r.Log[3], r.Log[2] }, []string{"fence"}},
		"done, and is not":              {func(r *Record) { r.Writes[0].ID = "w2" }, []string{"fence"}},
		"not done, and is":              {func(r *Record) { r.Writes[0].Outcome = NotDone }, []string{"fence"}},
		"done twice":                    {func(r *Record) { r.Log[4].Changes = r.Log[2].Changes }, []string{"fence"}},
		"returns late":                  {func(r *Record) { r.Waits[1].Returned += 2 * ms }, []string{"cancelled"}},
		"is not served":                 {func(r *Record) { r.Waits[2].Returned = 3101 * ms }, []string{"progress"}},
		"lets others pass for too long": {func(r *Record) { *r = *letsPass(); r.Waits[2].Returned = 8101 * ms }, []string{"progress"}},
		"lets nobody pass at first":     {func(r *Record) { *r = *letsPass(); r.Waits[3].Returned = 3101 * ms }, []string{"progress"}},
		"lets nobody pass in between":   {func(r *Record) { *r = *letsPass(); r.Waits[3].Returned = 3099 * ms }, []string{"progress"}},
		"lets nobody pass at last":      {func(r *Record) { *r = *letsPass(); r.Waits[4].Returned = 5000 * ms }, []string{"progress"}},
		"lets none pass who is served":  {func(r *Record) { *r = *letsPass(); r.Waits[4].OK = false }, []string{"progress"}},
		"two terms go on":               {func(r *Record) { r.Holds[8].Ended = 3002 * ms }, []string{"held at once"}},
		"a term's context goes on":      {func(r *Record) { r.Holds[8].ContextsEnded = 3001 * ms }, []string{"contexts"}},
		"nobody leads at first":         {func(r *Record) { r.Healed, r.Holds = -300*ms, slices.Delete(r.Holds, 8, 9) }, []string{"leader"}},
		"nobody leads at last":          {func(r *Record) { r.Over = 7001 * ms }, []string{"leader"}},
		"nobody ever leads":             {func(r *Record) { r.Holds = r.Holds[:8] }, []string{"leader"}},
		"something is left":             {func(r *Record) { r.Left = []string{"a node"} }, []string{"left"}},
		"served out of order":           {func(r *Record) { r.Holds[0].Granted, r.Holds[1].Granted = 15*ms, 11*ms; r.Holds[0].Ended = 15 * ms }, []string{"front", "order", "tokens"}},
		"goes on after it was over":     {func(r *Record) { r.Forced[2], r.Holds[1].Ended = 12*ms, 3*time.Second }, []string{"held at once"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			tc.spoil(r)
			assert.Equal(t, tc.want, found(r))
		})
	}
}

// What nobody can know beforehand is not held against anybody.
func TestForce(t *testing.T) {
	r := good()
	r.Log[3].Session, r.Holds[0].Ended = 9, 15*ms // an operator deletes the node
	assert.Empty(t, found(r))
	r = good()
	r.Forced[1], r.Holds[0].Ended = 10*ms, 15*ms // and ends the session
	assert.Empty(t, found(r))
}

// A client whose session was ended may hear that it has the lock when the next one has it
// already. By the order of the servers it had the lock first.
func TestGrantedAfterTheNodeHadGone(t *testing.T) {
	r := good()
	r.Holds[0].Granted, r.Holds[0].Ended = 15*ms, 18*ms
	assert.NotEmpty(t, Front(r), "nobody ended it")
	r.Forced[1] = 10 * ms
	assert.Empty(t, Front(r))
	r.Holds[1].Granted = 9 * ms
	assert.NotEmpty(t, Front(r), "the next one had it before the node was gone")
}

// A process may be stopped between the grant and its first look at the hold, for
// longer than its session lasts.
func TestOverAtTheFirstLook(t *testing.T) {
	r := good()
	r.Holds[0].Granted, r.Holds[0].Ended = 15*ms, 15*ms
	assert.NotEmpty(t, found(r))
	r.Holds[0].Over = true
	assert.Empty(t, found(r))
	r.Holds[1].Granted = 9 * ms
	assert.NotEmpty(t, Front(r), "the next one had it before the node was gone")
}

func TestStaleWrites(t *testing.T) {
	r := good()
	r.Writes[0].Fenced = false
	r.Log[2], r.Log[3] = r.Log[3], r.Log[2]
	require.Empty(t, Fence(r))
	assert.Equal(t, 1, StaleWrites(r))
}
