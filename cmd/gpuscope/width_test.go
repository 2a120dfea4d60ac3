package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/gpu/wgpu"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

// The lines of every table of a demo run, including the list of tables, have at most --width cells.
func TestDemoTablesStayWithinTheirWidth(t *testing.T) {
	gputest.Open(t) // skips the test if there is no GPU
	path := filepath.Join(t.TempDir(), "demo.json")
	var out, errs bytes.Buffer
	p := testProgram(&out, &errs)
	p.driver, p.open = wgpu.New(), p.openModel
	args := []string{"run", "-n", "4", "--profile", "off", "--timing", "dispatch", "--trace", path}
	args = append(args, "--device", os.Getenv("GPUSCOPE_DEVICE"))
	if status := p.main(t.Context(), args); status != exitDone {
		t.Fatalf("exit %d: %s", status, &errs)
	}
	shown := 0
	for _, kind := range append(report.Tables(), report.Table{}) {
		for _, scope := range []string{"", "all", "decode", "prefill"} {
			for _, w := range []int{40, 80, 100, 160} {
				args := []string{"trace", "show", path, "--width", fmt.Sprint(w)}
				if kind.Name != "" {
					args = append(args, "--table", kind.Name)
				}
				if scope != "" {
					args = append(args, "--steps", scope)
				}
				out.Reset()
				if testProgram(&out, &errs).main(t.Context(), args) != exitDone {
					continue // the table needs other steps
				}
				shown++
				for line := range strings.Lines(out.String()) {
					if line = strings.TrimSuffix(line, "\n"); table.Width(line) > w {
						t.Errorf("%v: a line of %d cells: %.60q", args[3:], table.Width(line), line)
						break
					}
				}
			}
		}
	}
	if least := 4 * len(report.Tables()); shown < least {
		t.Errorf("%d tables were printed, want %d or more", shown, least)
	}
}
