// Package conformance holds the cases that the client and the recipes must pass
// on every kind of server: the in-process one, also as a stand-in for ClickHouse Keeper, one
// real ZooKeeper, and a real ensemble. It has tests only.
//
// A case sees the servers through a backend and makes clients through an env,
// which puts a network of its own under each, to be cut and frozen. It works
// below a node of its own, and when it has ended nothing may be left there: no
// ephemeral node, no watch.
package conformance
