package zktest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	zktest "github.com/paddock-zk/paddock/testing"
)

// A rule is a fault for the requests that match, until it is removed.
func ExampleRule() {
	srv, conn, stop := serverAndConn()
	defer stop()

	rule := srv.On(zktest.Match{Op: "getData", Path: "/jobs/*"}, zktest.Fail(-101)) // no node
	_, _, err := conn.Get("/jobs/1")
	fmt.Println(err, rule.Fired())
	rule.Remove()
	// Output: zk: node does not exist 1
}

// A match without Path takes any path, and Nth takes one of the requests.
func ExampleMatch() {
	srv, conn, stop := serverAndConn()
	defer stop()

	srv.On(zktest.Match{Op: "getData", Nth: 2}, zktest.Fail(-101))
	for range 3 {
		_, _, err := conn.Get("/")
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// zk: node does not exist
	// <nil>
}

// The server tells what clients have left.
func ExampleCounters() {
	srv, conn, stop := serverAndConn()
	defer stop()

	if _, err := conn.Create("/a", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	counters := srv.Counters()
	fmt.Println(counters.Sessions, counters.Ephemerals, counters.Watches)
	// Output: 1 1 0
}

func ExampleSession() {
	srv, conn, stop := serverAndConn()
	defer stop()

	for _, session := range srv.Sessions() {
		fmt.Println(session.ID == conn.SessionID(), session.Timeout, session.Remote != "")
	}
	// Output: true 10s true
}

// A server of a test for limits takes less than a real one would.
func ExampleLimits() {
	srv, conn, stop := serverAndConn(zktest.WithLimits(zktest.Limits{Watches: 1}))
	defer stop()

	_, _, _, first := conn.GetW("/")
	_, _, _, second := conn.ChildrenW("/")
	fmt.Println(first, second, srv.Counters().Watches)
	_, err := conn.Set("/", nil, -1) // the watch fires
	fmt.Println(err, srv.Counters().Watches)
	// Output:
	// <nil> unknown error: -125 1
	// <nil> 0
}

func serverAndConn(opts ...zktest.Option) (srv *zktest.Server, conn *zk.Conn, stop func()) {
	srv, err := zktest.New(opts...)
	if err != nil {
		log.Fatal(err)
	}
	conn, events, err := zk.Connect([]string{srv.ConnectString()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	return srv, conn, func() { conn.Close(); _ = srv.Close() }
}
