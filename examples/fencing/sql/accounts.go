package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/paddock-zk/paddock/recipes/locks"
)

// schema has the highest token beside the data that it protects.
const schema = `
CREATE TABLE IF NOT EXISTS accounts (
	id      TEXT PRIMARY KEY,
	balance INTEGER NOT NULL,
	fence   INTEGER NOT NULL DEFAULT 0
)`

// Accounts are balances in a database, written by who holds a lock. A token is
// that of Hold.FencingToken.
//
// Each statement compares and raises the fence together with what it does, so
// the database decides, and it needs neither a transaction nor an isolation
// level of a certain kind.
type Accounts struct {
	DB *sql.DB
}

// Read returns a balance and raises the account's fence to the token: who held
// the lock before can no longer change what was read. The error matches
// locks.ErrFenced if a later holder was here, and sql.ErrNoRows if there is
// no such account.
func (a Accounts) Read(ctx context.Context, id string, token int64) (balance int64, err error) {
	if token <= 0 {
		return 0, stale(id, token)
	}
	err = a.DB.QueryRowContext(ctx,
		`UPDATE accounts SET fence = ?1 WHERE id = ?2 AND fence <= ?1 RETURNING balance`, token, id).Scan(&balance)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, a.why(ctx, id, token)
	}
	return balance, err
}

// Write replaces a balance. Errors are those of Read; nothing is written then.
func (a Accounts) Write(ctx context.Context, id string, balance, token int64) error {
	if token <= 0 {
		return stale(id, token)
	}
	done, err := a.DB.ExecContext(ctx,
		`UPDATE accounts SET balance = ?1, fence = ?2 WHERE id = ?3 AND fence <= ?2`, balance, token, id)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	if err == nil && n == 0 {
		err = a.why(ctx, id, token)
	}
	return err
}

// why tells a stale token from an account that does not exist.
func (a Accounts) why(ctx context.Context, id string, token int64) error {
	var fence int64
	if err := a.DB.QueryRowContext(ctx, `SELECT fence FROM accounts WHERE id = ?`, id).Scan(&fence); err != nil {
		return err
	}
	return stale(id, token)
}

// stale is also the answer to token 0, which is that of a hold that is over.
func stale(id string, token int64) error {
	return fmt.Errorf("account %s, token %d: %w", id, token, locks.ErrFenced)
}

// WriteUnfenced is how it is done without a fence.
func (a Accounts) WriteUnfenced(ctx context.Context, id string, balance int64) error {
	_, err := a.DB.ExecContext(ctx, `UPDATE accounts SET balance = ?1 WHERE id = ?2`, balance, id)
	return err
}
