// Package transcript compares what the locks send with golden files. It has tests
// only, and these use public API only, so that the locks can be rebuilt under them.
//
// A difference is a change of the protocol. Processes of two versions stand in one
// queue while a service is upgraded, so it has to be meant. Then
//
//	go test ./internal/test/transcript -update
//
// rewrites the files in testdata, and the commit says why.
//
// # The golden files
//
// Each file is a situation in virtual time, five milliseconds away from the
// server. It has steps (==), in each the clients (--), and of each client its
// messages in order: requests (>), replies (<), events (!), and the end of a
// connection (#).
//
//	 0 > #1 create2, 96 bytes Path="/l/_c_(1: owner A)-lock-" Data="a" ACL=[{31 world anyone}] Flags=3
//	 + > #2 getChildren, 15 bytes Path="/l"
//	10 < #1 ok Path="/l/_c_(1: owner A)-lock-0000000000" Stat
//
// The first column is the time in milliseconds since the step began. A plus means
// that the request was sent at once after the one before, with no wait between
// them. Whether two such requests leave in one write is for the scheduler to say,
// so it is not compared. A dot means that the time is drawn at random.
//
// The words are those of the server's transcript: fields that are zero are left
// out. With them and its length a request is known to the byte. Random values have
// names in order of appearance. Requests are numbered in each step. The prefix of a
// node shows a number for its UUID, what the tag in it says of the owner, and
// whether its owner yields.
//
// # The tables
//
// requests.txt has the round trips and the requests of each step, by operation.
// allocations.txt has what a lock costs, in the client and in the server.
package transcript
