package conformance

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/paddock-zk/paddock/framework"
)

// marked has every client of every case present a password that can be
// recognised, and log everything that there is to be logged. Afterwards nothing
// may have told it: neither a log, in whatever form, nor an error.
var marked = flag.Bool("secrets", false, "mark the credentials of all clients, and look for them in all that is told")

const markedPassword = "CanaryOfTheWholeSuite"

var (
	markedWitness = new(transcript)
	markedClients atomic.Int64 // that log to the witness
)

// mark changes clients that have no credentials or logger of their own.
func mark(cfg *framework.Config) {
	if cfg.Auth == nil {
		cfg.Auth = []framework.Auth{{Scheme: "digest", Data: []byte("marked:" + markedPassword)}}
	}
	if cfg.Logger == nil {
		cfg.Logger = markedWitness.logger()
		markedClients.Add(1)
	}
}

// lookForMarks ends the program.
func lookForMarks(code int) {
	if *marked && code == 0 {
		code = 1
		seen := markedWitness.text()
		switch forms := markedWitness.told(markedPassword); {
		case len(forms) > 0:
			fmt.Println("FAIL: the password was told:", forms)
		case strings.Count(seen, "connected") < int(markedClients.Load()): // in two forms, and some never do
			fmt.Println("FAIL: the witness slept")
		default:
			fmt.Printf("secrets: %d clients, %d lines of logs and errors, the password in none\n", markedClients.Load(), strings.Count(seen, "\n"))
			code = 0
		}
	}
	os.Exit(code)
}
