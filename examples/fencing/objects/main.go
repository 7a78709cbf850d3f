// Command objects shows a lock that protects an object in an object store. The
// store itself refuses an owner that has lost the lock and does not know it yet. It
// needs nothing for that but conditional writes.
//
// It runs on a ZooKeeper server of its own, or on yours with
// ZK_CONNECT_STRING=host:port,..., and on an object store inside the program.
package main

import (
	"context"
	"errors"
	"log"
	"net/http/httptest"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

func main() { playground.Main("objects", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	store := httptest.NewServer(NewStore())
	defer store.Close()
	report := Object{URL: store.URL + "/reports/today", HTTP: store.Client()}

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

	annHold, err := locks.NewInterProcessMutex(ann, "/locks/report").Acquire(ctx)
	if err != nil {
		return err
	}
	annToken := annHold.FencingToken()
	if err := report.Write(ctx, []byte("Ann: in work"), annToken); err != nil {
		return err
	}
	out.Println("Ann has the lock and writes")

	// Ann's process stands still for longer than her session lasts. To the
	// servers that comes to the same as an operator who removes her node.
	if err := bob.Delete(ctx, annHold.Path(), framework.AnyVersion); err != nil {
		return err
	}
	bobHold, err := locks.NewInterProcessMutex(bob, "/locks/report").Acquire(ctx)
	if err != nil {
		return err
	}
	seen, err := report.Read(ctx, bobHold.FencingToken())
	if err != nil {
		return err
	}
	out.Printf("Bob has it now, and reads %q", seen)

	// Bob has not written yet, and still it is too late for Ann.
	err = report.Write(ctx, []byte("Ann: done"), annToken)
	out.Println("Ann's late write is refused:", errors.Is(err, locks.ErrFenced))
	if err := report.Write(ctx, []byte("Bob: done"), bobHold.FencingToken()); err != nil {
		return err
	}
	if seen, err = report.Read(ctx, bobHold.FencingToken()); err != nil {
		return err
	}
	out.Printf("the report says %q", seen)

	// The same write without the fence.
	if err := report.WriteUnfenced(ctx, []byte("Ann: done")); err != nil {
		return err
	}
	if seen, err = report.Read(ctx, bobHold.FencingToken()); err != nil {
		return err
	}
	out.Printf("without the fence it says %q", seen)

	if err := annHold.Release(); !errors.Is(err, locks.ErrLockLost) {
		return err
	}
	return bobHold.Release()
}
