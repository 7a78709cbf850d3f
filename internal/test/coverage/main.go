// Command coverage reads what `go test -coverprofile` writes and prints how
// much of each package has run, by all test binaries together.
//
// Its exit status is 1 if less than -least percent of one of the packages named
// with -of has run, or if the profile does not have it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	least := flag.Float64("least", 95, "`percent` of statements that have to have run")
	of := flag.String("of", "", "`packages` of which, with commas between them")
	missed := flag.String("missed", "", "list what has not run in this `package`")
	flag.Parse()
	if err := run(os.Stdout, flag.Arg(0), *least, strings.FieldsFunc(*of, func(r rune) bool { return r == ',' }), *missed); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, file string, least float64, of []string, missed string) error {
	in, err := os.Open(file) //nolint:gosec // the file that the caller names
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	p, err := read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if missed != "" {
		return p.list(out, missed)
	}
	if err := p.table(out); err != nil {
		return err
	}
	return p.judge(least, of)
}
