// Package differential has tests only. They send the same scripts of raw
// requests to zktest and to a real ZooKeeper and compare the answers byte for
// byte. Before that they replace zxids, session ids and times by names that do
// not depend on the server.
//
// The transcripts under testdata were made by ZooKeeper 3.8.0, and zktest is
// compared with them on every run. With the build tag realzk the scripts also
// run against a server that the tests start; -update writes the transcripts
// anew.
package differential
