package transport

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/paddock-zk/paddock/internal/wire"
)

// Suspects are the requests at which the servers may be ending connections, since they are
// larger than the servers take or of an operation that the servers do not know.
//
// A server that ends a connection does not say at which request. So every request that had
// no answer then is under suspicion: its size, and larger ones of its operation. An answer
// to one of that size or more clears it. After a second end, what is under suspicion is
// sent one by one, each behind a small write that is answered. If the next five connections
// end at such a request, nothing of that size is sent for a while. If size cannot be the
// reason, the servers lack the operation. They lack one, too, if they answer so.
//
// Servers whose quorum comes and goes answer reads, and end at writes. So a small request is
// not under suspicion if one of its operation was answered before.
//
// On a server that takes no session up again, each of these ends would cost a session. So
// there one end is enough for an operation that only some of these servers know, unless
// one has answered it before. If the server has ended at that moment for another reason,
// the client does without for nothing.
//
// Its mutex is a leaf, like that of a connection.
type Suspects struct {
	log  *zap.Logger
	any  atomic.Bool   // something is in the maps
	turn chan struct{} // holds a token while a request is sent by itself

	taken [operations]atomic.Bool // by operation: it was answered

	mu    sync.Mutex // guards the fields below
	of    map[wire.Op]*suspicion
	lacks map[wire.Op]bool
}

// operations is how many there are at most. A negative one counts from the end.
const operations = 1 << 7

// suspicion is what is known of the requests of one operation.
type suspicion struct {
	fine   int       // the largest that was answered
	worst  int       // the largest that was not
	ends   int       // of connections with a request that is not fine
	limit  int       // how large requests are to be that can be made smaller
	guilty int       // the size of the request sent by itself that was the last to end a connection
	alone  int       // how often that was so, in a row
	until  time.Time // nothing of that size is sent before
	last   time.Time // when a connection has last ended so
}

const (
	mostEnds  = 2 // before requests are sent by themselves
	mostAlone = 5 // ends in a row with one that was: seldom so by chance
	// guiltyFor is how long it takes until such a request is tried again. Other servers may
	// take it, or the same ones with another configuration.
	guiltyFor = time.Minute
	// mostDoublings bounds the time between trials with larger requests: it begins with
	// guiltyFor, and doubles with each end.
	mostDoublings = 6
)

// SurelyTaken is whether every server takes a request of that size.
func SurelyTaken(op wire.Op, size int) bool { return size < surelyTaken && basic[op] }

const surelyTaken = 1 << 10

// basic are the operations that every server knows.
var basic = map[wire.Op]bool{
	wire.OpCreate: true, wire.OpDelete: true, wire.OpExists: true, wire.OpGetData: true, wire.OpSetData: true,
	wire.OpGetChildren: true, wire.OpGetChildren2: true, wire.OpSync: true, wire.OpMulti: true, wire.OpCheck: true,
	wire.OpRemoveWatches: true,
}

// young is whether there are versions of ClickHouse Keeper without an operation that later
// ones have, or that ZooKeeper has.
func young(op wire.Op) bool {
	return op == wire.OpCreateContainer || op == wire.OpCreateTTL || op == wire.OpGetEphemerals
}

func newSuspects(log *zap.Logger) *Suspects {
	return &Suspects{log: log, turn: make(chan struct{}, 1), of: make(map[wire.Op]*suspicion), lacks: make(map[wire.Op]bool)}
}

func (s *Suspects) tookOnce(op wire.Op) bool { return s.taken[op&(operations-1)].Load() }

// innocent is whether a request cannot be the reason why a connection ended. Of one that only
// some versions of a Keeper know, which forgets sessions, the servers before may have been of a
// later one.
func (s *Suspects) innocent(op wire.Op, size int, forgets bool) bool {
	return SurelyTaken(op, size) || size < surelyTaken && s.tookOnce(op) && (!forgets || !young(op))
}

// Lacks is whether the servers lack an operation: it was found out, and none has been
// answered since.
func (s *Suspects) Lacks(op wire.Op) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lacks[op]
}

// Lacking are the names of the operations that the servers lack, sorted.
func (s *Suspects) Lacking() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for op := range s.lacks {
		names = append(names, op.String())
	}
	slices.Sort(names)
	return names
}

// Verdict is what is to be done with a request.
type Verdict int

// The verdicts.
const (
	Free   Verdict = iota // it may be sent
	Alone                 // it is to be sent by itself
	Guilty                // it would end the connection
)

// Judge returns the worst verdict on some calls, and the call.
func (s *Suspects) Judge(calls ...*Call) (worst Verdict, of *Call) {
	if !s.any.Load() {
		return Free, nil
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range calls {
		if v := s.of[call.op].judge(call.Size(), now); v > worst {
			worst, of = v, call
		}
	}
	return worst, of
}

func (x *suspicion) judge(size int, now time.Time) Verdict {
	switch {
	case x == nil, size <= x.fine, x.ends < mostEnds:
		return Free
	case x.alone >= mostAlone && size >= x.guilty && now.Before(x.until):
		return Guilty
	}
	return Alone
}

// Doubts is whether an operation is better not part of a larger request: the servers lack
// it, or connections have ended at such requests.
func (s *Suspects) Doubts(op wire.Op) bool {
	if !s.any.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.of[op]
	return s.lacks[op] || x != nil && x.ends >= mostEnds
}

// Turn is where a token has to be put by whoever sends a request by itself.
func (s *Suspects) Turn() chan struct{} { return s.turn }

// Limit is how large a request of an operation should be for which several will do. Once
// no connection has ended for some time, it is twice as much as what was answered: the
// servers may take more by now.
func (s *Suspects) Limit(op wire.Op, most int) int {
	if !s.any.Load() {
		return most
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.of[op]; x != nil && x.ends >= mostEnds {
		limit := max(x.limit, x.fine)
		if time.Since(x.last) > guiltyFor<<min(x.ends-mostEnds, mostDoublings) {
			limit *= 2
		}
		return min(most, limit)
	}
	return most
}

// ended takes in that a connection has ended which was up, and the calls that ended with
// it. Those that were sent by themselves are behind a request that was answered. It returns
// whether one of them may be the reason that is known of no request of other clients: it is
// large, or connections have ended at such requests before. forgets says that the server
// takes no session up again.
func (s *Suspects) ended(calls []*Call, forgets bool, err error) (ours bool) {
	if !endedAt(err) {
		return false // a silence, say, or we ourselves
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	largest, fine := make(map[wire.Op]int), make(map[wire.Op]int)
	var blamed *Call
	for _, call := range calls {
		if lost := (*LostError)(nil); !errors.As(call.err, &lost) || !lost.Sent {
			continue
		}
		if call.carries != 0 && !s.innocent(call.carries, 0, forgets) {
			largest[call.carries] = max(largest[call.carries], 1) // not the size is suspected
		}
		size, x := call.Size(), s.of[call.op]
		if s.innocent(call.op, size, forgets) {
			continue
		}
		if x != nil && size <= x.fine {
			fine[call.op] = max(fine[call.op], size)
			continue
		}
		largest[call.op] = max(largest[call.op], size)
		if call.alone && x != nil && (blamed == nil || size > blamed.Size()) {
			blamed = call
		}
	}
	for op, size := range largest {
		x := s.of[op]
		if x == nil {
			x = &suspicion{limit: size}
			s.of[op] = x
		}
		x.ends++
		if forgets && young(op) && !s.tookOnce(op) && size < surelyTaken {
			x.ends, x.alone, x.guilty = max(x.ends, mostEnds), mostAlone, 0
			x.until = time.Now().Add(guiltyFor << min(x.ends, mostDoublings)) // a trial costs a session
			s.lacks[op] = true
			if blamed != nil && blamed.op == op {
				blamed = nil
			}
			s.log.Warn("the servers do not know a request: the connection has ended at it, and the session with it",
				zap.Stringer("request", op), zap.Error(err))
		}
		ours = ours || size >= surelyTaken || x.ends >= mostEnds
		x.last = time.Now()
		x.worst, x.limit = max(x.worst, size), min(x.limit, size/2)
	}
	defer s.lookLocked()
	if blamed != nil {
		if x := s.of[blamed.op]; x.blame(blamed.Size()) {
			if x.guilty == 0 {
				s.lacks[blamed.op] = true
			}
			s.log.Warn("the servers end the connection at a request, which is not sent again for a while",
				zap.Stringer("request", blamed.op), zap.Int("bytes", blamed.Size()), zap.Error(err))
		}
		return ours
	}
	for op, x := range s.of {
		if x.alone < mostAlone {
			x.alone = 0 // connections end without them
		}
		if size, ok := fine[op]; ok {
			x.fine = size / 2 // these servers may take less
		}
	}
	return ours
}

// blame takes in that a connection ended at a request that was sent by itself, and returns
// whether no more of the kind are to be sent.
func (x *suspicion) blame(size int) bool {
	if size < surelyTaken {
		size = 0 // it is not the size
	}
	switch {
	case x.alone == 0:
		x.guilty = size
	case size < x.guilty: // if larger ones were blamed for good, once more will do
		x.guilty, x.alone = size, max(0, min(x.alone, mostAlone)-2)
	}
	if x.alone++; x.alone < mostAlone {
		return false
	}
	x.until = time.Now().Add(guiltyFor)
	return true
}

// answered takes in that a call was answered.
func (s *Suspects) answered(call *Call, code wire.Code) {
	op := cmp.Or(call.carries, call.op)
	if code != wire.CodeUnimplemented {
		s.taken[op&(operations-1)].Store(true)
		if !s.any.Load() {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.lookLocked()
	switch {
	case code != wire.CodeUnimplemented:
		delete(s.lacks, op)
	case !s.lacks[op]:
		s.lacks[op] = true
		s.log.Warn("the servers do not know a request", zap.Stringer("request", op))
	}
	s.clearLocked(call.op, call.Size())
	s.clearLocked(call.carries, 1)
}

// clearLocked takes in that an operation of a size was answered.
func (s *Suspects) clearLocked(op wire.Op, size int) {
	x := s.of[op]
	switch {
	case x == nil:
	case size >= x.worst:
		delete(s.of, op)
	default:
		x.fine = max(x.fine, size)
		if size >= x.guilty {
			x.alone = 0
		}
	}
}

func (s *Suspects) lookLocked() { s.any.Store(len(s.of)+len(s.lacks) > 0) }
