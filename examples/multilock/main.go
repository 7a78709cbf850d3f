// Command multilock takes several locks as one, for transfers of money in opposite
// directions. With one lock after the other these would wait for each other for
// ever. examples/demo is the same with processes, of which one dies.
//
// It runs on a server of its own, or on yours with ZK_CONNECT_STRING=host:port,...
package main

import (
	"context"
	"errors"
	"log"
	"strconv"

	"github.com/paddock-zk/paddock/examples/internal/playground"
	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/recipes/locks"
)

const transfers = 10 // in each direction

func main() { playground.Main("multilock", run) }

func run(ctx context.Context, servers string, out *log.Logger) (err error) {
	client, err := framework.Connect(ctx, framework.Config{ConnectString: servers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for _, name := range []string{"ann", "bob"} {
		if _, err := client.Create(ctx, "/accounts/"+name, []byte("100"), framework.Persistent, framework.Parents()); err != nil {
			return err
		}
	}

	done := make(chan error, 2)
	go func() { done <- several(ctx, client, "ann", "bob", 5) }()
	go func() { done <- several(ctx, client, "bob", "ann", 3) }()
	if err := errors.Join(<-done, <-done); err != nil {
		return err
	}

	ann, _, err := balance(ctx, client, "ann")
	if err != nil {
		return err
	}
	bob, _, err := balance(ctx, client, "bob")
	if err != nil {
		return err
	}
	out.Printf("%d transfers of 5 one way and of 3 the other: Ann has %d, Bob has %d, together %d", transfers, ann, bob, ann+bob)
	return nil
}

func several(ctx context.Context, client *framework.Client, from, to string, amount int) error {
	for range transfers {
		if err := transfer(ctx, client, from, to, amount); err != nil {
			return err
		}
	}
	return nil
}

// transfer moves money under the locks of both accounts, which it has both or
// neither.
func transfer(ctx context.Context, client *framework.Client, from, to string, amount int) error {
	both := locks.NewInterProcessMultiLock(
		locks.NewInterProcessMutex(client, "/locks/"+from),
		locks.NewInterProcessMutex(client, "/locks/"+to),
	)
	return locks.Do(ctx, both, func(ctx context.Context) error {
		a, aVersion, err := balance(ctx, client, from)
		if err != nil {
			return err
		}
		b, bVersion, err := balance(ctx, client, to)
		if err != nil {
			return err
		}
		// Both are written or neither is. Neither is if another client has written
		// meanwhile: the locks rest on clocks, the versions do not.
		tx := client.Transaction()
		tx.Set("/accounts/"+from, []byte(strconv.Itoa(a-amount)), aVersion)
		tx.Set("/accounts/"+to, []byte(strconv.Itoa(b+amount)), bVersion)
		_, err = tx.Commit(ctx)
		return err
	})
}

func balance(ctx context.Context, client *framework.Client, name string) (amount int, version int32, err error) {
	data, stat, err := client.Get(ctx, "/accounts/"+name)
	if err != nil {
		return 0, 0, err
	}
	amount, err = strconv.Atoi(string(data))
	return amount, stat.Version, err
}
