package retry_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-zk/paddock/retry"
)

// sqlError is how drivers tell what went wrong, by SQLSTATE.
type sqlError struct{ State string }

func (e *sqlError) Error() string { return "SQLSTATE " + e.State }

// judgeSQL knows the states that a database asks to be tried again: it has
// rolled the transaction back, so nothing has happened.
func judgeSQL(e *sqlError) retry.Decision {
	switch e.State {
	case "40001", "40P01": // serialization failure, deadlock
		return retry.Again
	case "08006": // connection failure
		return retry.Unsure
	}
	return retry.Stop
}

var ledger = retry.BoundedExponentialBackoff(time.Millisecond, 20*time.Millisecond, 5).Named("ledger").
	WithJitter(retry.FullJitter).
	WithClassifier(retry.As(judgeSQL))

// inTx runs work in a transaction, and all of it again if the database lost
// interest. A failed commit is Unsure unless the database says otherwise.
func inTx(ctx context.Context, db *sql.DB, work func(ctx context.Context, tx *sql.Tx) error) error {
	return retry.Do(ctx, ledger, func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return retry.Mark(err, retry.Again) // nothing was done yet
		}
		defer tx.Rollback()
		if err := work(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// A transaction that is repeated after a serialization failure, and not
// repeated when it is not known whether the commit took place.
func Example_sql() {
	fake := &fakeDB{commits: []error{&sqlError{"40001"}, &sqlError{"40P01"}, nil, &sqlError{"08006"}}}
	db := sql.OpenDB(fake)
	defer db.Close()

	book := func() error {
		return inTx(context.Background(), db, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO entries VALUES ($1)", 7)
			return err
		})
	}
	fmt.Println(book(), "after", fake.begun, "transactions")

	fake.begun = 0
	err := book()
	fmt.Println(errors.Is(err, retry.ErrUnsure), "after", fake.begun, "transaction")
	// Output:
	// <nil> after 3 transactions
	// true after 1 transaction
}

// fakeDB is a database whose commits end as listed. It serves as connector,
// driver, connection, transaction and result.
type fakeDB struct {
	commits []error
	begun   int
}

func (f *fakeDB) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fakeDB) Driver() driver.Driver                        { return f }
func (f *fakeDB) Open(string) (driver.Conn, error)             { return f, nil }
func (f *fakeDB) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("not supported") }
func (f *fakeDB) Close() error                                 { return nil }
func (f *fakeDB) Begin() (driver.Tx, error)                    { f.begun++; return f, nil }
func (f *fakeDB) Rollback() error                              { return nil }

func (f *fakeDB) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return f.Begin() }

func (f *fakeDB) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (f *fakeDB) Commit() error {
	err := f.commits[0]
	f.commits = f.commits[1:]
	return err
}
