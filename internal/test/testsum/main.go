// Command testsum reads what `go test -json` prints, shows it as a person
// wants to see it (packages, slow tests, the output of what failed), and counts
// the cases of the conformance suites by the server they ran on.
//
// Its exit status is 1 if a test failed or was skipped, if a package did not
// come to its end, if nothing ran, or if a suite that exists has no case. It
// does not know that `go test` itself failed: use it in a pipe with pipefail.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	folder := flag.String("suites", "internal/test/conformance", "the `folder` of the suites, whose absence is fine; empty if the tests are none")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, folder string) error {
	var sources []string
	if folder != "" {
		var err error
		if sources, err = filepath.Glob(filepath.Join(folder, "*.go")); err != nil {
			return err
		}
	}
	r := newReport(out, filepath.ToSlash(folder))
	if err := r.read(in); err != nil {
		return err
	}
	return r.finish(len(sources) > 0)
}
