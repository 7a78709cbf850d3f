// Command sql shows a lock that protects rows of a database: whoever lost the
// lock and does not know it yet is refused by the database itself.
//
// It runs on a ZooKeeper server of its own, or on yours with
// ZK_CONNECT_STRING=host:port,..., and on a database in memory.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func main() { playground.Main("sql", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.ExecContext(ctx, schema+`; INSERT INTO accounts (id, balance) VALUES ('piggy', 100)`); err != nil {
		return err
	}
	accounts := Accounts{db}

	ann, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ann.Close()) }()
	bob, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bob.Close()) }()

	// Ann reads and is about to write what she has worked out from that.
	annHold, err := locks.NewInterProcessMutex(ann, "/locks/piggy").Acquire(ctx)
	if err != nil {
		return err
	}
	annToken := annHold.FencingToken()
	annSaw, err := accounts.Read(ctx, "piggy", annToken)
	if err != nil {
		return err
	}
	out.Println("Ann has the lock and reads", annSaw)

	// Ann's process stands still for longer than her session lasts. To the
	// servers that comes to the same as an operator who removes her node.
	if err := bob.Delete(ctx, annHold.Path(), framework.AnyVersion); err != nil {
		return err
	}
	bobHold, err := locks.NewInterProcessMutex(bob, "/locks/piggy").Acquire(ctx)
	if err != nil {
		return err
	}
	bobSaw, err := accounts.Read(ctx, "piggy", bobHold.FencingToken())
	if err != nil {
		return err
	}
	if err := accounts.Write(ctx, "piggy", bobSaw+50, bobHold.FencingToken()); err != nil {
		return err
	}
	out.Println("Bob has it now, and adds 50")

	// The write that was on its way when Ann's process stopped arrives.
	err = accounts.Write(ctx, "piggy", annSaw-30, annToken)
	out.Println("Ann's late write is refused:", errors.Is(err, locks.ErrFenced))
	balance, err := accounts.Read(ctx, "piggy", bobHold.FencingToken())
	if err != nil {
		return err
	}
	out.Println("the balance is", balance)

	// The same write without the fence.
	if err := accounts.WriteUnfenced(ctx, "piggy", annSaw-30); err != nil {
		return err
	}
	if balance, err = accounts.Read(ctx, "piggy", bobHold.FencingToken()); err != nil {
		return err
	}
	out.Println("without the fence it is", balance, "and Bob's 50 are lost")

	if err := annHold.Release(); !errors.Is(err, locks.ErrLockLost) {
		return err
	}
	return bobHold.Release()
}
