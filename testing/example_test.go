package zktest_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-zookeeper/zk"

	zktest "github.com/paddock-zk/paddock/testing"
)

// In a test, zktest.Start(t) does the first lines and the clean-up.
func Example() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	conn, _, err := zk.Connect([]string{srv.ConnectString()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/greeting", []byte("hello"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(srv.Ephemerals(conn.SessionID()))

	if err := srv.ExpireSession(conn.SessionID()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(srv.Ephemerals(0))
	// Output:
	// [/greeting]
	// []
}

// The reply to a create is lost, so the client cannot know that it happened.
func ExampleServer_On() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	rule := srv.On(zktest.Match{Op: "create", Path: "/jobs"}, zktest.CutAfter())

	conn, _, err := zk.Connect([]string{srv.ConnectString()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Create("/jobs", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println("client:", err)
	fmt.Println("fired:", rule.Fired())
	if err := srv.Dump(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// client: zk: connection closed
	// fired: 1
	// / "" version 0
	// /jobs "" version 0
	// /zookeeper "" version 0
	// /zookeeper/config "" version 0
	// /zookeeper/quota "" version 0
}

func ExampleServer_WaitChildren() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	conn, _, err := zk.Connect([]string{srv.ConnectString()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	go func() {
		for range 3 {
			_, _ = conn.Create("/n-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		}
	}()
	// Three and "zookeeper", which is always there.
	if err := srv.WaitChildren(context.Background(), "/", 4); err != nil {
		log.Fatal(err)
	}
	fmt.Println(srv.Requests()["create"])
	// Output: 3
}

func ExampleNewCluster() {
	cluster, err := zktest.NewCluster(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	leader := cluster.Leader()
	_ = cluster.Member(leader).Stop()
	_ = cluster.WaitLeader(context.Background())
	fmt.Println("another leader:", cluster.Leader() != leader)
	// Output: another leader: true
}
