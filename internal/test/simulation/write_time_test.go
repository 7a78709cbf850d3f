package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
)

// work is what is done under a lock.
func (t *heldLock) work() {
	a := t.a
	for range 1 + a.r.IntN(3) {
		switch a.r.IntN(4) {
		case 0, 1:
			a.write(t, false)
		case 2:
			a.writePlainly(t)
		}
		// Mostly short, now and then longer than a session lasts.
		d := time.Duration(a.r.ExpFloat64() * float64(10*time.Millisecond))
		if a.r.IntN(12) == 0 {
			d = a.w.span(a.r, 1.5)
		}
		select {
		case <-a.w.calmed:
			d = time.Duration(a.r.Int64N(int64(3 * time.Millisecond)))
		default:
		}
		done := t.bound.Done()
		if a.r.IntN(3) == 0 {
			done = nil // who does not look
		}
		a.restUnder(done, d)
	}
}

// restUnder waits like rest, and not for long once all is calm.
func (a *actor) restUnder(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d + 1)
	defer timer.Stop()
	calmed := a.w.calmed
	select {
	case <-calmed:
		calmed = nil
	default:
	}
	select {
	case <-timer.C:
	case <-done:
	case <-calmed:
	}
}

// write writes under the fence of a hold, and gives it back with it if last.
func (a *actor) write(t *heldLock, last bool) {
	a.n++
	id := fmt.Sprintf("%s-%d", a.name, a.n)
	path := "/data" + lockOf(t.nodes[0])
	tx := t.h.Transaction()
	version := framework.AnyVersion
	var opts []framework.CommitOption
	if a.r.IntN(3) == 0 {
		if stat, ok := a.look(a.c, &registerOp{path: path}); ok {
			version, opts = stat.Version, append(opts, framework.Idempotent())
		}
	}
	tx.Set(path, []byte(id), version)
	w, began := a.w, a.w.now()
	err := a.wait(w.ctx, t.nodes[0], func(ctx context.Context) (err error) {
		switch {
		case w.planted.unfence:
			_, err = a.c.Set(ctx, path, []byte(id), framework.AnyVersion)
		case last:
			_, err = tx.CommitAndRelease(ctx, opts...)
		default:
			_, err = tx.Commit(ctx, opts...)
		}
		return err
	})
	if last && !w.planted.unfence {
		t.endsAt(began)
	}
	a.wrote(t, id, path, true, err)
}

// writePlainly writes without a fence, as a control.
func (a *actor) writePlainly(t *heldLock) {
	a.n++
	id := fmt.Sprintf("%s-%d", a.name, a.n)
	path := "/plain" + lockOf(t.nodes[0])
	err := a.wait(a.w.ctx, t.nodes[0], func(ctx context.Context) error {
		_, err := a.c.Set(ctx, path, []byte(id), framework.AnyVersion)
		return err
	})
	a.wrote(t, id, path, false, err)
}

func (a *actor) wrote(t *heldLock, id, path string, fenced bool, err error) {
	outcome := check.Done
	switch {
	case err == nil:
	case framework.Ambiguous(err):
		outcome = check.Unknown
	default:
		outcome = check.NotDone
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.rec.Writes = append(a.w.rec.Writes, check.Write{Who: a.name, ID: id, Path: path, Nodes: t.nodes, Fenced: fenced, Outcome: outcome})
	result := "done"
	if err != nil {
		result = classify(err)
	}
	a.w.tellLocked(a.name, "writes %s to %s: %s", id, path, result)
}
