package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
	"github.com/paddock-zk/paddock/retry"
)

const opening = 1000 // what each account begins with

var allAccounts = []string{"1", "2", "3", "4", "5", "6", "7", "8"}

// bank has a node for each account, with the balance as text, and a lock for each.
type bank struct{ client *framework.Client }

// open makes the accounts.
func (b bank) open(ctx context.Context) error {
	for _, account := range allAccounts {
		_, err := b.client.Create(ctx, "/accounts/"+account, []byte(strconv.Itoa(opening)), framework.Persistent, framework.Parents())
		if err != nil {
			return err
		}
	}
	return nil
}

// locks are those of some accounts, as one lock.
func (b bank) locks(accounts ...string) locks.Lock {
	var each []locks.Lock
	for _, account := range accounts {
		each = append(each, locks.NewInterProcessMutex(b.client, "/locks/"+account))
	}
	return locks.NewInterProcessMultiLock(each...)
}

// total adds up all accounts under the locks of all, and counts the transfers.
func (b bank) total(ctx context.Context) (total, transfers int, err error) {
	add := func(ctx context.Context) error {
		balances, writes, err := b.read(ctx, allAccounts...)
		for _, balance := range balances {
			total += balance
		}
		transfers = writes / 2
		return err
	}
	if *unlocked {
		err = add(ctx)
	} else {
		err = locks.Do(ctx, b.locks(allAccounts...), add)
	}
	return total, transfers, err
}

// read returns the balances of some accounts, and how often these were written.
func (b bank) read(ctx context.Context, accounts ...string) (balances []int, writes int, err error) {
	for _, account := range accounts {
		data, stat, err := b.client.Get(ctx, "/accounts/"+account)
		if err != nil {
			return nil, 0, err
		}
		balance, err := strconv.Atoi(string(data))
		if err != nil {
			return nil, 0, err
		}
		balances = append(balances, balance)
		writes += int(stat.Version)
	}
	return balances, writes, nil
}

// again repeats a transfer that was not made because no server answered, or because the locks were lost.
var again = retry.Forever(100 * time.Millisecond).WithClassifier(retry.On(framework.ErrNotConnected, locks.ErrLockLost))

// move makes a transfer under the locks of both accounts.
func (b bank) move(ctx context.Context, from, to string, meanwhile func()) error {
	return retry.Do(ctx, again, func(ctx context.Context) error {
		if *unlocked {
			return b.transfer(ctx, b.client.Transaction(), from, to, meanwhile)
		}
		hold, err := b.locks(from, to).Acquire(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = hold.Release() }()
		err = b.transfer(hold.Context(), hold.Transaction(), from, to, meanwhile) //nolint:contextcheck // it is a child of ctx
		if err != nil {
			err = errors.Join(err, hold.Err()) // which says whether the locks were lost
		}
		return err
	})
}

// transaction writes accounts. That of a hold is applied only while its locks are held.
type transaction interface {
	Set(path string, data []byte, version int32)
	Commit(ctx context.Context, opts ...framework.CommitOption) ([]framework.Result, error)
}

// transfer moves a sum from one account to another. It calls meanwhile between reading and writing.
func (b bank) transfer(ctx context.Context, tx transaction, from, to string, meanwhile func()) error {
	balances, _, err := b.read(ctx, from, to)
	if err != nil {
		return err
	}
	meanwhile()
	amount := min(balances[0], 1+rand.IntN(100))
	tx.Set("/accounts/"+from, []byte(strconv.Itoa(balances[0]-amount)), framework.AnyVersion)
	tx.Set("/accounts/"+to, []byte(strconv.Itoa(balances[1]+amount)), framework.AnyVersion)
	_, err = tx.Commit(ctx)
	if framework.Ambiguous(err) {
		return nil // both were written or neither, so the total is the same
	}
	return err
}
