//go:build formats

package html_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/analyzetest"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/report/html"
	"gpuscope/trace/tracetest"
)

// shown is what scripts/formats/report.mjs reports about a page.
type shown struct {
	Sections []string
	Rows     map[string]int
	Steps    int
	First    string
	Injected bool
}

// browse opens pages in Chromium. The test fails if a page fails a check of the script. Each page compares
// its trace with the baseline, if both have decode steps.
func browse(t *testing.T, traces map[string]*trace.Trace, baseline *trace.Trace, names ...string) []shown {
	t.Helper()
	dir := t.TempDir()
	args := []string{filepath.Join("..", "..", "..", "scripts", "formats", "report.mjs")}
	for _, name := range names {
		var page bytes.Buffer
		x, o := analyze.NewIndex(traces[name]), html.Options{Name: name}
		base := diff.Side{Index: analyze.NewIndex(baseline), Name: "baseline"}
		now := diff.Side{Index: x, Selection: x.Phase(trace.Decode), Name: name}
		base.Selection = base.Index.Phase(trace.Decode)
		if len(now.Selection.Steps) > 0 {
			var err error
			if o.Diff, err = diff.Of(context.Background(), base, now); err != nil {
				t.Fatal(err)
			}
		}
		if err := html.Write(context.Background(), &page, x, o); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(dir, name+".html"))
		if err := os.WriteFile(args[len(args)-1], page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("node", args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var list []shown
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var s shown
		if err := d.Decode(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if len(list) != len(names) {
		t.Fatalf("%d of %d pages were opened", len(list), len(names))
	}
	return list
}

func TestReportWorksInChromium(t *testing.T) {
	run := tracetest.Llama(15, 200)
	if err := analyzetest.Cost(run, len(run.Steps)-1); err != nil {
		t.Fatal(err)
	}
	hostile := tracetest.Llama(1, 4)
	const attack = `</script><script>window.injected = true</script><img src=x onerror="window.injected=1">"'&`
	hostile.Model.Name, hostile.Device.Name = attack, attack
	hostile.Command = []string{attack}
	for i := range hostile.Plans {
		if p := &hostile.Plans[i]; p.Kernel == "add" {
			p.Kernel = attack
		}
	}
	for i := range hostile.Graph.Ops {
		hostile.Graph.Ops[i].Name += attack
	}
	for i := range hostile.Steps {
		hostile.Steps[i].Text = attack
	}
	software := tracetest.Llama(2, 12)
	software.Device.AdapterType, software.Device.Ceilings = trace.AdapterCPU, nil
	empty := tracetest.Llama(1, 2)
	empty.Steps, empty.Observer = nil, nil
	traces := map[string]*trace.Trace{
		"run": run, "hostile": hostile, "software": software, "empty": empty, "tiny": tracetest.Tiny(),
	}
	names := []string{"run", "hostile", "software", "empty", "tiny"}
	for i, s := range browse(t, traces, tracetest.Llama(2, 12), names...) {
		if s.Injected {
			t.Errorf("%s: text of the trace became markup", names[i])
		}
		if want := len(traces[names[i]].Steps); s.Steps != want {
			t.Errorf("%s: the timeline has %d steps, want %d", names[i], s.Steps, want)
		}
		if want := len(traces[names[i]].Steps); s.Rows["steps"] != want {
			t.Errorf("%s: the table of steps has %d rows, want %d", names[i], s.Rows["steps"], want)
		}
		if compared := slices.Contains(s.Sections, "diff"); compared != (names[i] != "empty") {
			t.Errorf("%s: the page compares two traces: %t", names[i], compared)
		}
		if !strings.Contains(s.First, "ix first") && names[i] != "empty" && names[i] != "tiny" {
			t.Errorf("%s: the headline is %q", names[i], s.First)
		}
	}
}
