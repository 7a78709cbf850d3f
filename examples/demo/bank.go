package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

const (
	accounts = 8
	opening  = 1000 // what each account begins with
)

// bank has its accounts as nodes, numbered from 1, with the balance as text.
type bank struct{ client *framework.Client }

func account(n int) string { return "/accounts/" + strconv.Itoa(n) }

func lockPath(n int) string { return "/locks/" + strconv.Itoa(n) }

// locks are those of two accounts, taken together.
func (b bank) locks(x, y int) *locks.InterProcessMultiLock {
	return locks.NewInterProcessMultiLock(locks.NewInterProcessMutex(b.client, lockPath(x)), locks.NewInterProcessMutex(b.client, lockPath(y)))
}

// open makes the accounts.
func (b bank) open(ctx context.Context) error {
	for n := range accounts {
		if _, err := b.client.Create(ctx, account(n+1), []byte(strconv.Itoa(opening)), framework.Persistent, framework.Parents()); err != nil {
			return err
		}
	}
	return nil
}

// transaction is what writes the accounts: the one of a hold is applied only while its
// locks are held.
type transaction interface {
	Set(path string, data []byte, version int32)
	Commit(ctx context.Context, opts ...framework.CommitOption) ([]framework.Result, error)
}

// move moves a sum from one account to another.
func (b bank) move(ctx context.Context, tx transaction, from, to int) error {
	payer, _, err := b.read(ctx, from)
	if err != nil {
		return err
	}
	payee, _, err := b.read(ctx, to)
	if err != nil {
		return err
	}
	select { // a service would compute something here, or ask another one
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	amount := min(1+rand.IntN(100), payer)
	tx.Set(account(from), []byte(strconv.Itoa(payer-amount)), framework.AnyVersion)
	tx.Set(account(to), []byte(strconv.Itoa(payee+amount)), framework.AnyVersion)
	_, err = tx.Commit(ctx)
	if framework.Ambiguous(err) {
		return nil // both were written or neither, so the total is the same
	}
	return err
}

func (b bank) read(ctx context.Context, n int) (balance int, version int32, err error) {
	data, stat, err := b.client.Get(ctx, account(n))
	if err != nil {
		return 0, 0, err
	}
	balance, err = strconv.Atoi(string(data))
	return balance, stat.Version, err
}

// total adds up all accounts as they were at one moment: a transaction of checks says that
// none has changed meanwhile.
func (b bank) total(ctx context.Context) (total int, err error) {
	for range 50 {
		total = 0
		tx := b.client.Transaction()
		for n := range accounts {
			balance, version, err := b.read(ctx, n+1)
			if err != nil {
				return 0, err
			}
			total += balance
			tx.Check(account(n+1), version)
		}
		if _, err = tx.Commit(ctx); !errors.Is(err, framework.ErrBadVersion) {
			return total, err
		}
	}
	return 0, fmt.Errorf("it always changes while it is read: %w", err)
}

// locksLeft counts the nodes of locks.
func (b bank) locksLeft(ctx context.Context) (left int, err error) {
	for n := range accounts {
		all, err := locks.NewInterProcessMutex(b.client, lockPath(n+1)).Participants(ctx)
		if err != nil {
			return left, err
		}
		left += len(all)
	}
	return left, nil
}
