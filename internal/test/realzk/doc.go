// Package realzk runs real ZooKeeper servers on loopback, for tests: one standalone, or
// an ensemble. Its members can be killed, paused and restarted. They can also be cut off
// from each other while they go on serving their clients.
//
// A test calls StartT; a TestMain or a program calls Start and Close. The
// servers are processes of Java and end with the process that started them:
// Close kills and reaps them, and on Linux so does the death of the process,
// however it comes about. Their data lies in memory where the system offers
// that, and is removed by Close, or by the next Start if Close was never
// reached.
//
// It needs Debian's packages libzookeeper-java and default-jre-headless; Find says
// what is missing. JAVA_HOME chooses another Java. ZK_SUITE chooses the ZooKeeper
// of another Debian, which Fetch downloads and unpacks without installing it;
// ZK_CLASSPATH chooses any other ZooKeeper.
//
// Tests that need a real server carry the build tag realzk and never skip:
// where the install is missing they fail.
package realzk
