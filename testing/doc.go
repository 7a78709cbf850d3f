// Package zktest is a ZooKeeper server in the test's own process, for any
// client, whose time and failures the test commands.
//
//	srv := zktest.Start(t)
//	conn, _, err := zk.Connect([]string{srv.ConnectString()}, 10*time.Second)
//
// The server speaks ZooKeeper's protocol over TCP on loopback, or, with
// InMemory, over connections that work inside a testing/synctest bubble, where
// a session of thirty seconds expires at once. It answers as ZooKeeper 3.8
// does, or 3.9 with Version; docs/testing.md lists what is missing or different.
//
// Verbs let sessions expire, connections break, servers stand still and time
// pass; rules and plans do so to chosen or random requests; StartCluster has
// several members, which can be killed, parted and held back.
//
// A server is state and endpoints. The state is an ensemble: the order of the
// transactions, and the sessions with their deadlines. A member has a replica
// of the data and serves clients; the watches are its own. One server is an
// ensemble with one member.
package zktest
