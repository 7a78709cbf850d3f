package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

// opening is what each account begins with.
const opening = 1000

// bank has its accounts as nodes, numbered from 1, with the balance as text.
type bank struct {
	client   *framework.Client
	accounts int
}

// account is one as it was read.
type account struct {
	number  int
	balance int
	version int32
}

func accountPath(n int) string { return "/accounts/" + strconv.Itoa(n) }

// lock is what stands for one account. Who takes it puts a name into the node,
// for others to see who holds and who waits.
func (b *bank) lock(n int, name string) *locks.InterProcessMutex {
	return locks.NewInterProcessMutex(b.client, "/locks/"+strconv.Itoa(n), locks.NodeData([]byte(name)))
}

// open makes the accounts.
func (b *bank) open(ctx context.Context) error {
	if err := b.client.EnsurePath(ctx, "/accounts"); err != nil {
		return err
	}
	tx := b.client.Transaction()
	for n := 1; n <= b.accounts; n++ {
		tx.Create(accountPath(n), []byte(strconv.Itoa(opening)), framework.Persistent)
	}
	_, err := tx.Commit(ctx, framework.Idempotent())
	return err
}

func (b *bank) read(ctx context.Context, n int) (account, error) {
	data, stat, err := b.client.Get(ctx, accountPath(n))
	if err != nil {
		return account{}, err
	}
	balance, err := strconv.Atoi(string(data))
	return account{number: n, balance: balance, version: stat.Version}, err
}

// write stores two accounts, both or neither. If exact, it does so only if
// nobody has written either since it was read.
//
// Under the locks nobody can have. But locks rest on clocks and versions do not,
// so a program should use both where it can.
func (b *bank) write(ctx context.Context, exact bool, x, y account) error {
	var opts []framework.CommitOption
	if exact {
		opts = append(opts, framework.Idempotent()) // a lost reply is looked up
	} else {
		x.version, y.version = framework.AnyVersion, framework.AnyVersion
	}
	tx := b.client.Transaction()
	tx.Set(accountPath(x.number), []byte(strconv.Itoa(x.balance)), x.version)
	tx.Set(accountPath(y.number), []byte(strconv.Itoa(y.balance)), y.version)
	_, err := tx.Commit(ctx, opts...)
	return err
}

// errBusy reports that somebody always wrote while the accounts were read.
var errBusy = errors.New("accounts changed while they were read")

// balances reads all accounts as they were at one and the same moment: a
// transaction of nothing but checks says that none has changed meanwhile.
func (b *bank) balances(ctx context.Context) ([]int, error) {
	const tries = 20
	for range tries {
		all := make([]account, b.accounts)
		err := inParallel(b.accounts, func(i int) (err error) {
			all[i], err = b.read(ctx, i+1)
			return err
		})
		if err != nil {
			return nil, err
		}
		balances := make([]int, b.accounts)
		tx := b.client.Transaction()
		for i, a := range all {
			balances[i] = a.balance
			tx.Check(accountPath(a.number), a.version)
		}
		_, err = tx.Commit(ctx)
		if err == nil {
			return balances, nil
		}
		if !errors.Is(err, framework.ErrBadVersion) {
			return nil, err
		}
	}
	return nil, errBusy
}

// queues lists who holds each lock and who waits for it.
func (b *bank) queues(ctx context.Context) ([][]locks.Participant, error) {
	queues := make([][]locks.Participant, b.accounts)
	err := inParallel(b.accounts, func(i int) (err error) {
		queues[i], err = b.lock(i+1, "").Participants(ctx)
		return err
	})
	return queues, err
}

// passOn waits until the lock of an account has passed on from somebody, and
// returns who has it then; "" if nobody.
func (b *bank) passOn(ctx context.Context, n int, from string) (to string, err error) {
	for {
		queue, err := b.lock(n, "").Participants(ctx)
		if err != nil {
			return "", fmt.Errorf("who has account %d: %w", n, err)
		}
		node, holder := "", ""
		for _, p := range queue {
			switch name := string(p.Data); {
			case name == from:
				node = p.Path
			case p.Holds:
				holder = name
			}
		}
		if node == "" {
			return holder, nil
		}
		exists, _, watch, err := b.client.ExistsW(ctx, node)
		if err != nil {
			return "", err
		}
		if exists {
			select {
			case <-watch.C:
			case <-ctx.Done():
			}
		}
		watch.Stop()
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
}

// inParallel calls fn for each index below n, all at once.
func inParallel(n int, fn func(i int) error) error {
	done := make(chan error, n)
	for i := range n {
		go func() { done <- fn(i) }()
	}
	var errs []error
	for range n {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}
