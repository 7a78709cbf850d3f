package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// slow is from how many seconds on a passed test is worth a line.
const slow = 1.0

// suites are the conformance suites, in the order they are listed.
var suites = []struct{ test, server string }{
	{"TestInProcess", "the in-process server"},
	{"TestInProcessAs39", "the in-process server as ZooKeeper 3.9"},
	{"TestStandalone", "one real ZooKeeper"},
	{"TestEnsemble", "a real three-node ensemble"},
}

// event is a line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// name identifies a test; that of its package has no test.
type name struct{ pkg, test string }

// report is what has been read so far.
type report struct {
	out    io.Writer
	folder string // of the suites
	err    error  // of the first write to out

	open    map[name]*strings.Builder // output of tests that have not ended
	parents map[name]bool             // tests that have subtests
	passed  map[name]bool
	failed  []string
	skipped []string
	ended   int // packages with tests
}

func newReport(out io.Writer, folder string) *report {
	return &report{
		out: out, folder: folder,
		open: make(map[name]*strings.Builder), parents: make(map[name]bool), passed: make(map[name]bool),
	}
}

func (r *report) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(r.out, format, args...); r.err == nil {
		r.err = err
	}
}

// read takes in all lines. One that is no event is shown as it is.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil || e.Action == "":
			r.printf("%s", line)
		default:
			r.add(e)
		}
		if errors.Is(err, io.EOF) {
			return r.err
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	id := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.printf("%s", e.Output)
	case "start":
		r.open[id] = new(strings.Builder)
	case "run":
		r.open[id] = new(strings.Builder)
		for i, c := range e.Test {
			if c == '/' { // which a test's own name may hold as well
				r.parents[name{e.Package, e.Test[:i]}] = true
			}
		}
	case "output":
		if b := r.open[id]; b != nil && e.Test != "" {
			b.WriteString(e.Output)
		} else if line := withoutCoverage(e.Output); line != "PASS\n" && line != "\n" {
			r.printf("%s", line)
		}
	case "pass", "fail", "skip":
		r.end(id, e)
	}
}

// withoutCoverage cuts off what one test binary has run of all packages, which
// says nothing about any of them.
func withoutCoverage(line string) string {
	if before, _, found := strings.Cut(line, "coverage: "); found {
		if fields := strings.Fields(before); len(fields) < 2 {
			return "\n" // of what has no tests, too
		}
		return strings.TrimRight(before, " \t") + "\n"
	}
	return line
}

func (r *report) end(id name, e event) {
	output := r.open[id]
	delete(r.open, id)
	if id.test == "" {
		r.ended++
		if e.Action == "fail" {
			r.failed = append(r.failed, id.pkg)
		}
		return // and skipped is a package without tests
	}
	full := id.pkg + " " + id.test
	switch e.Action {
	case "pass":
		r.passed[id] = true
		if e.Elapsed >= slow && !strings.Contains(id.test, "/") {
			r.printf("      %s (%.1fs)\n", id.test, e.Elapsed)
		}
	case "fail":
		r.failed = append(r.failed, full)
		r.show(output)
	case "skip":
		r.skipped = append(r.skipped, full)
		r.show(output)
	}
}

func (r *report) show(output *strings.Builder) {
	if output != nil {
		r.printf("%s", output)
	}
}

// cases counts the tests of a suite that passed and have no subtests.
func (r *report) cases(suite string) int {
	n := 0
	for id := range r.passed {
		if strings.HasSuffix(id.pkg, "/"+r.folder) && strings.HasPrefix(id.test, suite+"/") && !r.parents[id] {
			n++
		}
	}
	return n
}

// finish prints the counts and returns what is wrong with the run. exist says
// whether there are suites, all of which must then have run.
func (r *report) finish(exist bool) error {
	var wrong []string
	for id, output := range r.open {
		wrong = append(wrong, strings.TrimSpace(id.pkg+" "+id.test)+" did not end")
		r.show(output)
	}
	for _, test := range r.failed {
		wrong = append(wrong, test+" failed")
	}
	for _, test := range r.skipped {
		wrong = append(wrong, test+" was skipped")
	}
	if r.ended == 0 {
		wrong = append(wrong, "nothing ran")
	}
	for _, suite := range suites {
		if r.folder == "" {
			break // these tests are no suites
		}
		n := r.cases(suite.test)
		if exist && n == 0 {
			wrong = append(wrong, "no case ran on "+suite.server)
		}
		r.printf("%5d cases passed on %s (%s)\n", n, suite.server, suite.test)
	}
	if !exist && r.folder != "" {
		r.printf("      there is no %s yet\n", r.folder)
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		return errors.Join(r.err, errors.New(strings.Join(wrong, "\n\t")))
	}
	return r.err
}
