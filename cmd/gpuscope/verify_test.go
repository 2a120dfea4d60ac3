//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/gpu/wgpu"
	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
)

// verified runs a command on this machine's GPU. In the source of every kernel, from is replaced by to.
func verified(t *testing.T, line, from, to string) (status int, stdout, stderr string) {
	t.Helper()
	gputest.Open(t) // skips the test if there is no GPU
	var out, err bytes.Buffer
	p := testProgram(&out, &err)
	p.driver, p.open = mistaken{wgpu.New(), from, to}, p.openModel
	args := append(strings.Fields(line), "--device", os.Getenv("GPUSCOPE_DEVICE"))
	return p.main(t.Context(), args), out.String(), err.String()
}

// mistaken is a driver that changes the source of the kernels that it compiles.
type mistaken struct {
	gpu.Driver
	from, to string
}

func (m mistaken) Open(index int) (gpu.Device, error) {
	dev, err := m.Driver.Open(index)
	return mistakenDevice{dev, m}, err
}

type mistakenDevice struct {
	gpu.Device
	by mistaken
}

func (d mistakenDevice) NewPipeline(desc gpu.PipelineDesc) (gpu.Pipeline, error) {
	if d.by.from != "" {
		desc.Source = strings.ReplaceAll(desc.Source, d.by.from, d.by.to)
	}
	return d.Device.NewPipeline(desc)
}

func TestTheEmbeddedModelIsWithinItsTolerances(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gaps.json")
	status, stdout, stderr := verified(t,
		"verify -n 2 --ids 1,47,300,12,77,5,261 --chunks 4 --format json --trace "+file, "", "")
	if status != exitDone {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	var printed struct {
		Title []string
		Rows  []struct {
			Key, Said       string
			Share, Compared float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatal(err)
	}
	if len(printed.Rows) < 4*60 || !strings.Contains(printed.Title[0], "all within their tolerance") {
		t.Errorf("%d rows under %q", len(printed.Rows), printed.Title)
	}
	tr, err := trace.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tr.Steps {
		gaps := 0
		for _, d := range tr.Steps[i].Dispatches {
			if d.Error == nil {
				continue // another dispatch computes its operator's result
			}
			gaps++
			whole := tr.Graph.Values[*d.Error.Value].DType != "f32" || d.Error.Run != nil
			if d.Error.Compared == 0 || d.Error.Compared != d.Error.Elements || !whole {
				t.Fatalf("step %d: %+v", i, d.Error)
			}
		}
		if gaps < 45 {
			t.Errorf("step %d: errors of %d of %d dispatches", i, gaps, len(tr.Steps[i].Dispatches))
		}
	}
}

// A trace that cannot be written is reported exactly once.
func TestVerifyReportsAFullDiskOnce(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	status, _, stderr := verified(t, "verify -n 0 --ids 1 --trace /dev/full", "", "")
	if want := "write trace /dev/full: "; status != exitFailed || strings.Count(stderr, want) != 1 {
		t.Errorf("exit %d: %s", status, stderr)
	}
}

func TestWrongKernelIsTheFirstDivergence(t *testing.T) {
	golden := wordingtest.New(t)
	for _, test := range []struct{ name, ids, from, to, want, inherits, diverge string }{
		{
			"a wrong factor", "1,47,300", "v / (1.0 + exp(-v))", "v / (1.0 + exp(-1.001 * v))",
			"layers.0.mlp.gate+up+silu_mul.silu_mul", "mlp.down+add", "6 of ",
		},
		{
			"NaN or Inf", "1,47,300", "* scale * weight[i]", "* bitcast<f32>(0x7fc00000u | params.rows)", "layers.0.attn.norm",
			"", "1 of ",
		},
		{ // what later dispatches read of the row is finite
			"NaN or Inf in the row alone", "1", "    y[column] = result;\n    weighted",
			"    y[column] = select(result, bitcast<f32>(0x7fc00000u | column), column == 7u);\n    weighted",
			"layers.0.attn.o+add", "", "1 of ",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, stdout, stderr := verified(t, "verify -n 0 --ids "+test.ids, test.from, test.to)
			if status != exitFailed || !strings.Contains(stderr, "dispatches exceed") {
				t.Errorf("exit %d: %s", status, stderr)
			}
			firsts := regexp.MustCompile(`(?m)^(.*): s0 dispatch (.*)$`).FindAllStringSubmatch(stdout, -1)
			if len(firsts) == 0 || !strings.Contains(firsts[0][2], test.want+" ") {
				t.Fatalf("%q, want %s", firsts, test.want)
			}
			for i, first := range firsts {
				golden.Text(fmt.Sprint(test.name, " ", i), first[1])
			}
			if !strings.HasPrefix(stdout, test.diverge) {
				t.Errorf("%q, want %s", stdout[:min(len(stdout), 40)], test.diverge)
			}
			rows := map[string]string{}
			for l := range strings.Lines(stdout) {
				if f := strings.Fields(l); len(f) > 2 {
					rows[f[0]] = strings.Join(f[1:3], " ")
				}
			}
			if test.inherits != "" && rows[test.inherits] != "×6 inherits" {
				t.Errorf("%s: %q", test.inherits, rows[test.inherits])
			}
			if finite := len(firsts) == 1; finite != (test.inherits != "") {
				t.Errorf("NaN or Inf not reported: %t\n%s", finite, stdout)
			}
		})
	}
}
