package conformance

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paddock-zk/paddock/framework"
	"github.com/paddock-zk/paddock/framework/sasl"
	zktest "github.com/paddock-zk/paddock/testing"
)

// marked has every client of every case present a password that can be
// recognised, by digest and by SASL, and log everything that there is to be logged.
// Afterwards nothing may have told it: neither a log, in whatever form, nor an error.
var marked = flag.Bool("secrets", false, "mark the credentials of all clients, and look for them in all that is told")

const markedPassword = "CanaryOfTheWholeSuite"

var (
	marks         = []string{markedPassword} // what nothing may tell
	markedWitness = new(transcript)
	markedClients atomic.Int64 // that log to the witness
)

// markSASL has all clients prove themselves with the password, and servers know it.
func markSASL(t *testing.T) zktest.Option {
	if !*marked {
		return zktest.SASLUsers(nil)
	}
	mechanism = sasl.DigestMD5("marked", markedPassword)
	t.Cleanup(func() { mechanism = nil })
	return zktest.SASLUsers(map[string]string{"marked": markedPassword})
}

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
		var forms []string
		for _, secret := range marks {
			forms = append(forms, markedWitness.told(secret)...)
		}
		switch {
		case len(forms) > 0:
			fmt.Println("FAIL: a secret was told:", forms)
		case strings.Count(seen, "connected") < int(markedClients.Load()): // in two forms, and some never do
			fmt.Println("FAIL: the witness slept")
		default:
			fmt.Printf("secrets: %d clients, %d lines of logs and errors, %d secrets in none\n", markedClients.Load(), strings.Count(seen, "\n"), len(marks))
			code = 0
		}
	}
	os.Exit(code)
}
