// Package check says whether a run of clients kept what the locks promise. It
// knows what the servers have logged and what callers have seen, and nothing of
// the code that is judged.
//
// Each promise has a file; Record is what they are given.
package check
