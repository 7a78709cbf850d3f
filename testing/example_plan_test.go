package zktest_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	zktest "github.com/paddock-zk/paddock/testing"
)

// The server keeps each write and what it changed.
func ExampleTransaction() {
	srv, conn, stop := serverAndConn(zktest.TransactionLog())
	defer stop()

	if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	for _, tx := range srv.Transactions() {
		if tx.Op == "create" {
			fmt.Println(tx.Op, tx.Refused, len(tx.Changes))
		}
	}
	// Output: create false 1
}

// A change is to one node.
func ExampleChange() {
	srv, conn, stop := serverAndConn(zktest.TransactionLog())
	defer stop()

	if _, err := conn.Create("/a", []byte("blue"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	all := srv.Transactions()
	change := all[len(all)-1].Changes[0]
	fmt.Println(change.Path, string(change.Data), change.Owner == conn.SessionID())
	// Output: /a blue true
}

// A change makes a node, sets its data, or deletes it.
func ExampleChangeKind() {
	fmt.Println(zktest.Created, zktest.Deleted)
	// Output: created deleted
}

// A connection can be stalled in one direction: the client is heard and gets no answer.
func ExampleDirection() {
	srv, conn, stop := serverAndConn()
	defer stop()

	srv.Stall(conn.SessionID(), zktest.ToClient)
	answered := make(chan error, 1)
	go func() { _, _, err := conn.Get("/"); answered <- err }()
	select {
	case <-answered:
		fmt.Println("answered")
	case <-time.After(20 * time.Millisecond):
		fmt.Println("no answer")
	}
	srv.Unstall(conn.SessionID())
	fmt.Println(<-answered)
	// Output:
	// no answer
	// <nil>
}

// A distribution draws from the chance that it is given.
func ExampleDistribution() {
	uniform := zktest.Uniform(time.Millisecond, 3*time.Millisecond)
	d := uniform(rand.New(rand.NewPCG(1, 1)))
	fmt.Println(time.Millisecond <= d && d <= 3*time.Millisecond)
	// Output: true
}

// A plan draws faults from a seed. Here every request is hit.
func ExamplePlan() {
	srv, conn, stop := serverAndConn()
	defer stop()

	playing := srv.Play(zktest.Plan{Seed: 1, Match: zktest.Match{Op: "getData"}, Rate: 1, Faults: []zktest.Fault{zktest.Fail(-101)}})
	_, _, err := conn.Get("/")
	playing.Stop()
	fmt.Println(err)
	// Output: zk: node does not exist
}

// A plan that goes on can be stopped, and tells what it has done.
func ExamplePlaying() {
	srv, conn, stop := serverAndConn()
	defer stop()

	playing := srv.Play(zktest.Plan{Match: zktest.Match{Op: "exists"}, Rate: 1, Faults: []zktest.Fault{zktest.Delay(time.Millisecond)}})
	_, _, _ = conn.Exists("/a")
	playing.Stop()
	fmt.Println(len(playing.Log()))
	// Output: 1
}

// What a plan has done can be kept, and replayed.
func ExampleFired() {
	srv, conn, stop := serverAndConn()
	defer stop()

	playing := srv.Play(zktest.Plan{Match: zktest.Match{Op: "getData"}, Rate: 1, Faults: []zktest.Fault{zktest.Fail(-101)}})
	_, _, _ = conn.Get("/")
	playing.Stop()
	for _, fired := range playing.Log() {
		fmt.Println(fired.Op, fired.Path)
	}
	// Output: getData /
}

// A verb is done to the server by a plan, again and again.
func ExampleVerb() {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()

	done := make(chan struct{})
	playing := srv.Play(zktest.Plan{
		Pause: zktest.Always(time.Millisecond),
		Verbs: []zktest.Verb{{Name: "once", Do: func(*rand.Rand) { done <- struct{}{} }}},
	})
	<-done
	go func() {
		for range done { // until the plan has stopped
		}
	}()
	playing.Stop()
	close(done)
	fmt.Println(playing.Log()[0].Verb)
	// Output: once
}

// A function can look at each request.
func ExampleRequest() {
	srv, conn, stop := serverAndConn()
	defer stop()

	secret := func(r zktest.Request) bool { return strings.HasPrefix(r.Path, "/secret") }
	srv.On(zktest.Match{Func: secret}, zktest.Fail(-102)) // no rights
	_, _, err := conn.Get("/secret/1")
	fmt.Println(err)
	// Output: zk: not authenticated
}

// The server tells which watches are set.
func ExampleWatchInfo() {
	srv, conn, stop := serverAndConn()
	defer stop()

	if _, _, _, err := conn.GetW("/"); err != nil {
		log.Fatal(err)
	}
	for _, watch := range srv.Watches() {
		fmt.Println(watch.Path, watch.Kind, watch.Session == conn.SessionID())
	}
	_, err := conn.Set("/", nil, -1) // the watch fires
	fmt.Println(err, len(srv.Watches()))
	// Output:
	// / data true
	// <nil> 0
}
