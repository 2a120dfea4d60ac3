package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func TestTraceReportWritesAPage(t *testing.T) {
	t.Parallel()
	a, b := twoRuns(t)
	dir := filepath.Dir(a)
	out, empty := filepath.Join(dir, "page.html"), filepath.Join(dir, "empty.json")
	bare := tracetest.Llama(1, 2)
	bare.Steps, bare.Observer = nil, nil
	if err := trace.WriteFile(empty, bare); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		diff   bool // the page compares two traces
	}{
		{[]string{b}, exitDone, false},
		{[]string{b, a}, exitDone, true},
		{[]string{b, "-o", out}, exitDone, false},
		{[]string{b, a, "-o", out}, exitDone, true},
		{[]string{empty}, exitDone, false},
		{[]string{b, empty}, exitFailed, false},
		{nil, exitUsage, false},
		{[]string{a, b, a}, exitUsage, false},
		{[]string{a + ".none"}, exitFailed, false},
		{[]string{a, b + ".none"}, exitFailed, false},
		{[]string{a, "-o", filepath.Join(dir, "none", "page.html")}, exitFailed, false},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"trace", "report"}, c.args...)
		status := testProgram(&stdout, &stderr).main(t.Context(), args)
		if status != c.status {
			t.Errorf("%v: exit status %d, want %d: %s", c.args, status, c.status, stderr.String())
			continue
		}
		page := stdout.String()
		if len(c.args) > 1 && c.args[len(c.args)-2] == "-o" && status == exitDone {
			if page != "" {
				t.Errorf("%v: the page is on standard output too", c.args)
			}
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			page = string(text)
		}
		if (status == exitDone) != strings.HasPrefix(page, "<!doctype html>") {
			t.Errorf("%v: the output begins with %.40q", c.args, page)
		}
		if c.diff != strings.Contains(page, `<section id="diff">`) {
			t.Errorf("%v: section diff: %t, want %t", c.args, !c.diff, c.diff)
		}
	}
}
