package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/internal/test/check"
)

// registerOp is one operation on a register, as its caller saw it.
type registerOp struct {
	path       string
	client     int
	kind       registerKind
	value      string // to write, or read
	version    int32  // expected, or read
	outcome    check.Outcome
	newVersion int32 // of a write that is done
	began, end time.Duration
}

type registerKind int

const (
	opRead registerKind = iota
	opSet
	opCompareAndSet
)

func (op registerOp) String() string {
	outcome := [...]string{"", "done", "unknown", "not done"}[op.outcome]
	switch op.kind {
	case opRead:
		return fmt.Sprintf("%s is %q, version %d", op.path, op.value, op.version)
	case opSet:
		return fmt.Sprintf("%s set to %q: %s, version %d", op.path, op.value, outcome, op.newVersion)
	}
	return fmt.Sprintf("%s set to %q if at version %d: %s, version %d", op.path, op.value, op.version, outcome, op.newVersion)
}

// register is a node's data and version.
type register struct {
	value   string
	version int32
}

// registerModel is what one node does. An operation of unknown outcome is taken
// to happen at any time after its begin, or never.
var registerModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byPath := make(map[string][]porcupine.Operation)
		for _, op := range history {
			path := op.Input.(registerOp).path
			byPath[path] = append(byPath[path], op)
		}
		for _, path := range registers {
			if len(byPath[path]) > 0 {
				parts = append(parts, byPath[path])
			}
		}
		return parts
	},
	Init: func() any { return register{} },
	Step: func(state, input, _ any) (bool, any) {
		s, op := state.(register), input.(registerOp)
		switch op.kind {
		case opRead:
			return s.value == op.value && s.version == op.version, s
		case opSet:
			next := register{op.value, s.version + 1}
			return op.outcome == check.Unknown || next.version == op.newVersion, next
		default:
			matches := s.version == op.version
			next := s
			if matches {
				next = register{op.value, s.version + 1}
			}
			switch op.outcome {
			case check.Unknown:
				return true, next
			case check.Done:
				return matches && next.version == op.newVersion, next
			}
			return !matches, s
		}
	},
	DescribeOperation: func(input, _ any) string { return input.(registerOp).String() },
}

// decideFor bounds the time for one history. A history that is not decided by then
// counts as a failure.
const decideFor = 20 * time.Second

// judgeRegisters has the histories of the registers checked.
func (w *world) judgeRegisters(res *result) {
	for _, path := range registers {
		var history []porcupine.Operation
		for _, op := range w.register {
			if op.path != path {
				continue
			}
			end := int64(op.end)
			if op.outcome == check.Unknown {
				end = int64(check.Never)
			}
			history = append(history, porcupine.Operation{ClientId: op.client, Input: op, Call: int64(op.began), Return: end})
		}
		if len(history) == 0 {
			continue
		}
		res.Histories++
		slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		switch porcupine.CheckOperationsTimeout(registerModel, history, decideFor) {
		case porcupine.Illegal:
			res.Violations = append(res.Violations, check.Violation{Checker: "registers", Text: fmt.Sprintf("the %d operations on %s have no order", len(history), path)})
		case porcupine.Unknown:
			res.Undecided++
		}
	}
}

// useRegister does one operation on a register.
func (a *actor) useRegister(c *framework.Client) {
	op := registerOp{path: a.oneOf(registers...), client: a.number}
	a.n++
	op.value = fmt.Sprintf("%s-%d", a.name, a.n)
	var opts []framework.SetOption
	if a.r.IntN(2) == 0 {
		opts = append(opts, framework.Idempotent())
	}
	switch a.r.IntN(3) {
	case 0:
		op.kind = opSet
		a.set(c, op, framework.AnyVersion, nil) // an idempotent one may be applied more than once
	case 1:
		stat, ok := a.look(c, &op)
		if !ok {
			return
		}
		op.kind, op.version, op.value = opCompareAndSet, stat.Version, fmt.Sprintf("%s-%d", a.name, a.n)
		a.set(c, op, stat.Version, opts)
	case 2:
		a.read(c, op)
	}
}

// look reads a register as a follower has it, which may be out of date.
func (a *actor) look(c *framework.Client, op *registerOp) (stat *framework.Stat, ok bool) {
	err := a.wait(a.w.ctx, op.path, func(ctx context.Context) error {
		data, s, err := c.Get(ctx, op.path)
		if err == nil {
			stat, op.value = s, string(data)
		}
		return err
	})
	return stat, err == nil
}

func (a *actor) set(c *framework.Client, op registerOp, version int32, opts []framework.SetOption) {
	op.began = a.w.now()
	err := a.wait(a.w.ctx, op.path, func(ctx context.Context) error {
		stat, err := c.Set(ctx, op.path, []byte(op.value), version, opts...)
		if err == nil {
			op.newVersion = stat.Version
		}
		return err
	})
	switch {
	case err == nil:
		op.outcome = check.Done
	case framework.Ambiguous(err):
		op.outcome = check.Unknown
	case errors.Is(err, framework.ErrBadVersion) && op.kind == opCompareAndSet:
		op.outcome = check.NotDone
	default:
		a.w.tell(a.name, "could not set %s: %s", op.path, classify(err))
		return // it is said not to have happened; a read of its value would show it
	}
	a.keep(op)
}

// read reads a register and has a write prove that this was not out of date.
func (a *actor) read(c *framework.Client, op registerOp) {
	stat, ok := a.look(c, &op)
	if !ok {
		return
	}
	op.version, op.began = stat.Version, a.w.now()
	tx := c.Transaction()
	tx.Check(op.path, stat.Version)
	if a.w.planted.stale {
		op.began = a.w.now()
	} else if err := a.wait(a.w.ctx, op.path, func(ctx context.Context) error {
		_, err := tx.Commit(ctx)
		return err
	}); err != nil {
		return
	}
	op.outcome = check.Done
	a.keep(op)
}

func (a *actor) keep(op registerOp) {
	op.end = a.w.now()
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.register = append(a.w.register, op)
	a.w.tellLocked(a.name, "%v (since %.9f)", op, op.began.Seconds())
}
