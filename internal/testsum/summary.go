package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of the output of go test -json (see go doc test2json), with the fields that this program
// needs.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64 // seconds
	Output      string
	Key, Value  string // name and value of the attribute that an "attr" event reports
	FailedBuild string
}

// name identifies a test by its package and its name.
type name struct{ pkg, test string }

// children counts the failed subtests of a test.
type children struct{ failed int }

// summary adds up the events of any number of go test runs.
type summary struct {
	out                     io.Writer
	passed, failed, skipped int
	missing                 int // tests skipped because an adapter or test data is missing
	adapters                map[string]int
	output                  map[name][]string // output of tests and packages that are still running
	children                map[name]*children
	failures                map[string][]string // output of failed tests, by package
	skips                   []skip
	large                   int // skipped large tests for a real GPU
}

// skip is a top-level test that was skipped or has skipped subtests. The field n counts the skips, and
// reason is the reason of the first skip.
type skip struct {
	name
	n      int
	reason string
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out: out, adapters: map[string]int{}, output: map[name][]string{},
		children: map[name]*children{}, failures: map[string][]string{},
	}
}

// read processes the events of one run. It prints lines that are not events.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintf(s.out, "%s\n", lines.Bytes())
			continue
		}
		s.event(e)
	}
	return lines.Err()
}

func (s *summary) event(e event) {
	at := name{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if e.Action == "build-output" {
			at.pkg = e.ImportPath
		}
		s.output[at] = append(s.output[at], e.Output)
	case "attr":
		if e.Key == "adapter" {
			s.adapters[e.Value]++
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(at, e.Action)
		}
		delete(s.output, at)
	}
}

// endTest counts a finished test. A test with subtests counts only if it failed and none of its subtests
// failed.
func (s *summary) endTest(at name, action string) {
	if i := strings.LastIndexByte(at.test, '/'); i >= 0 {
		parent := name{at.pkg, at.test[:i]}
		if s.children[parent] == nil {
			s.children[parent] = &children{}
		}
		if action == "fail" {
			s.children[parent].failed++
		}
	}
	if action == "fail" {
		s.fail(at)
	}
	if sub := s.children[at]; sub != nil && (action != "fail" || sub.failed > 0) {
		return
	}
	switch action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
	case "skip":
		s.skip(at)
	}
}

// fail keeps the output of a failed test until its package ends.
func (s *summary) fail(at name) {
	for _, line := range s.output[at] {
		if !strings.HasPrefix(line, "=== ") {
			s.failures[at.pkg] = append(s.failures[at.pkg], line)
		}
	}
}

func (s *summary) skip(at name) {
	s.skipped++
	reason := skipReason(s.output[at])
	switch {
	case strings.Contains(reason, "adapter") || strings.Contains(reason, "shared"):
		s.missing++
	case strings.HasPrefix(reason, "large"):
		s.large++
	}
	at.test, _, _ = strings.Cut(at.test, "/")
	for i := range s.skips {
		if s.skips[i].name == at {
			s.skips[i].n++
			return
		}
	}
	s.skips = append(s.skips, skip{at, 1, reason})
}

// skipReason returns the message of a skipped test without the marks of the go tool.
func skipReason(output []string) string {
	var words []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, said, ok := strings.Cut(line, ".go:"); ok {
			_, line, _ = strings.Cut(said, ": ")
		}
		words = append(words, line)
	}
	return strings.Join(words, " ")
}

func (s *summary) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.out, "ok    %s %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		if e.FailedBuild != "" {
			fmt.Fprint(s.out, strings.Join(s.output[name{pkg: e.FailedBuild}], ""))
			s.failed++
		}
		// A panic or a timeout ends the process in the middle of a test. The output then belongs to a test
		// without an end event.
		for at := range s.output {
			if at.pkg == e.Package && at.test != "" {
				s.fail(at)
				s.failed++
				delete(s.output, at)
			}
		}
		s.fail(name{pkg: e.Package})
		fmt.Fprint(s.out, strings.Join(s.failures[e.Package], ""))
		delete(s.failures, e.Package)
		fmt.Fprintf(s.out, "FAIL  %s %.1fs\n", e.Package, e.Elapsed)
	}
}

// close prints the skipped tests, the devices and the totals.
func (s *summary) close() {
	for _, k := range s.skips {
		fmt.Fprintf(s.out, "skip  %s %s (%d): %s\n", k.pkg, k.test, k.n, k.reason)
	}
	var devices []string
	for adapter, n := range s.adapters {
		devices = append(devices, fmt.Sprintf("%d on %s", n, adapter))
	}
	slices.Sort(devices)
	if len(devices) == 0 {
		devices = []string{"none ran"}
	}
	fmt.Fprintf(s.out,
		"GPU tests: %s; %d skipped because an adapter or test data is missing, %d because they are large (make test-large)\n",
		strings.Join(devices, ", "), s.missing, s.large)
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
}
