// Package interop holds the tests in which Go, Java's Curator, Python's kazoo
// and go-zookeeper's own lock stand in the same queues on a real ZooKeeper. It
// has tests only.
//
// A peer is a process of one language that the tests command. It is one of the programs
// of folder java, which the run compiles, or this test binary itself in another role.
// Peers take locks on command, one by one, or in loads of many rounds. A witness judges
// who is inside at a time, and no library does. It is a counter in the tests' own
// process that peers tell over sockets.
//
// The tests carry the build tag interop and never skip: what they need is in
// Debian's packages libcurator-recipes-java, default-jdk-headless and
// python3-kazoo. ZK_SUITE chooses the server and the Curator of another Debian,
// as package realzk fetches them, and CURATOR_CLASSPATH any other Curator.
//
// What needs only Go runs without the tag: the witness's own tests, and those
// that keep the guide's pieces of Java and Go equal to what is run here.
package interop
