// Package zktest is a ZooKeeper server in the test's own process, for any
// client. The test controls its time and its failures.
//
//	srv := zktest.Start(t)
//	conn, _, err := zk.Connect([]string{srv.ConnectString()}, 10*time.Second)
//
// The server speaks ZooKeeper's protocol over TCP on loopback. With InMemory it
// uses connections that work inside a testing/synctest bubble, where a session
// of thirty seconds expires at once. It answers as ZooKeeper 3.8 does, or with
// Version as 3.9, or with Keeper as ClickHouse Keeper. docs/testing.md lists what is missing or different.
//
// A verb is a method that does something to the server: it expires a session,
// breaks a connection, freezes the server, or lets time pass. Rules apply
// faults to chosen requests, and plans to random ones. StartCluster starts
// several members, which a test can kill, separate and delay.
//
// A server is an ensemble with its members. The ensemble has the order of the
// transactions, and the sessions with their deadlines. A member has a replica
// of the data and watches of its own, and serves clients. A server alone is an
// ensemble with one member. What requests do to the tree of nodes, and the access lists,
// are in package internal/tree: a file for each kind of request.
package zktest
