package pprof_test

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/export/pprof"
	"gpuscope/trace/tracetest"
)

func parsed(t interface {
	Helper()
	Fatal(...any)
}, tr *trace.Trace,
) *profile.Profile {
	t.Helper()
	var b bytes.Buffer
	if err := pprof.Format.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// typeIndex returns the index of a sample type, or -1.
func typeIndex(p *profile.Profile, name string) int {
	return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == name })
}

func TestValuesAreThoseOfTheTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		p := parsed(t, tr)
		want := exporttest.TotalsOf(tr)
		type key struct{ step, what string }
		got := map[key]*big.Int{}
		timed := 0
		for _, s := range p.Sample {
			step := strconv.FormatInt(s.NumLabel["step"][0], 10)
			for i, typ := range p.SampleType {
				if typ.Type == "gpu_time" {
					if untimed := s.Label["gpu_time"] != nil; untimed && s.Value[i] != 0 {
						t.Fatalf("an untimed sample has the time %d", s.Value[i])
					} else if !untimed {
						timed++
					}
				}
				k := key{step, typ.Type}
				if got[k] == nil {
					got[k] = new(big.Int)
				}
				got[k].Add(got[k], big.NewInt(s.Value[i]))
			}
		}
		if timed != want.Timed {
			t.Fatalf("%d samples have a time, want %d", timed, want.Timed)
		}
		if (typeIndex(p, "gpu_time") >= 0) != (want.Timed > 0) {
			t.Fatalf("sample types %v, with %d timed samples", p.SampleType, want.Timed)
		}
		for step, sums := range want.Steps {
			for what, n := range map[string]*big.Int{
				"dispatches": sums.Dispatches, "workgroups": sums.Workgroups,
				"workgroups_wasted": sums.Wasted, "gpu_time": sums.GPU,
			} {
				sum := got[key{strconv.Itoa(step), what}]
				if sum == nil {
					sum = new(big.Int)
				}
				if sum.Cmp(n) != 0 {
					t.Fatalf("step %d: %s is %v, want %v", step, what, sum, n)
				}
			}
		}
	})
}

func TestStackIsKernelOperatorLayerPhase(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 3)
	p := parsed(t, tr)
	want := map[string]bool{
		"fd_split < layers.1.attn.sdpa < layer 1 < decode":         false,
		"linear_q4gsw_steel < layers.0.attn.q < layer 0 < prefill": false,
		"embedding_q4gsw < embed < prologue < prefill":             false,
		"linear_q4gsw_coop4_bicol < lm_head < epilogue < decode":   false,
	}
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			names = append(names, l.Line[0].Function.Name)
		}
		if _, known := want[strings.Join(names, " < ")]; known {
			want[strings.Join(names, " < ")] = true
		}
		f := s.Location[0].Line[0].Function
		if f.Filename != f.Name+".wgsl" || f.StartLine != 3 || s.Location[0].Line[0].Line != 3 {
			t.Fatalf("%s is in %s:%d", f.Name, f.Filename, f.StartLine)
		}
		if phase := s.Label["phase"]; len(phase) != 1 || phase[0] != names[len(names)-1] {
			t.Fatalf("the stack %v has the label phase %q", names, phase)
		}
	}
	for stack, found := range want {
		if !found {
			t.Errorf("no sample has the stack %s", stack)
		}
	}
	if p.DefaultSampleType != "gpu_time" || p.SampleType[len(p.SampleType)-1].Type != "gpu_time" {
		t.Errorf("the default sample type is %s", p.DefaultSampleType)
	}
	if p.TimeNanos == 0 || p.DurationNanos == 0 {
		t.Errorf("time %d, duration %d", p.TimeNanos, p.DurationNanos)
	}
}

// The stack of a block has the layer of the block's first dispatch.
func TestBlocksAreInTheirLayers(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 3)
	s := &tr.Steps[2]
	s.Timing = trace.TimingBlock
	want := map[string]int64{}
	for i := range s.Dispatches {
		op := &tr.Graph.Ops[tr.Graph.Dispatches[tr.Plans[s.Dispatches[i].Plan].Dispatch].Op]
		if op.Layer == nil {
			continue
		}
		name := fmt.Sprintf("block %d", *op.Layer)
		if len(s.Blocks) == 0 { // the prologue
			s.Blocks = append(s.Blocks, trace.Block{Name: "before", Dispatches: i, GPUNS: trace.Measured(5)})
		}
		if last := &s.Blocks[len(s.Blocks)-1]; last.Name == name {
			last.Dispatches++
			continue
		}
		s.Blocks = append(s.Blocks, trace.Block{Name: name, Dispatches: 1, GPUNS: trace.Measured(100)})
		want[fmt.Sprintf("%s < layer %d < decode", name, *op.Layer)] = 100
	}
	for _, sample := range parsed(t, tr).Sample {
		var names []string
		for _, l := range sample.Location {
			names = append(names, l.Line[0].Function.Name)
		}
		if stack := strings.Join(names, " < "); strings.HasPrefix(stack, "block ") {
			if got := sample.Value[len(sample.Value)-1]; got != want[stack] {
				t.Errorf("%s has %d ns", stack, got)
			}
			delete(want, stack)
		}
	}
	if len(want) > 0 {
		t.Errorf("no samples of %v", want)
	}
}

func TestUnmeasuredTraceHasNoTimes(t *testing.T) {
	t.Parallel()
	p := parsed(t, exporttest.Untimed(tracetest.Llama(1, 3)))
	if typeIndex(p, "gpu_time") >= 0 || len(p.SampleType) != 3 || p.DefaultSampleType != "workgroups" {
		t.Errorf("sample types %v, by default %s", p.SampleType, p.DefaultSampleType)
	}
	if len(p.Sample) == 0 {
		t.Error("no samples")
	}
}

// pprofTool runs go tool pprof and returns its output as lines of words.
func pprofTool(t *testing.T, args ...string) [][]string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"tool", "pprof", "-symbolize=none"}, args...)...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok {
			t.Fatalf("go tool pprof %q: %v: %s", args, err, e.Stderr)
		}
		t.Fatal(err)
	}
	var lines [][]string
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// flat returns the flat value of a function in the output of pprof -top.
func flat(t *testing.T, lines [][]string, function string) string {
	t.Helper()
	for _, words := range lines {
		if len(words) >= 6 && words[5] == function {
			return words[0]
		}
	}
	t.Fatalf("pprof shows no %s in %v", function, lines)
	return ""
}

func write(t *testing.T, tr *trace.Trace) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.pb")
	var b bytes.Buffer
	if err := pprof.Format.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGoToolPprofReadsProfiles(t *testing.T) {
	t.Parallel()
	before, after := tracetest.Llama(2, 4), tracetest.Llama(2, 4)
	const slower = 1_000_003
	for i := range after.Plans {
		after.Plans[i].NeededGroups-- // one workgroup has no work
	}
	sum, norms, inStep2 := int64(0), 0, 0
	for i := range after.Steps {
		s := &after.Steps[i]
		for j := range s.Dispatches {
			plan := &after.Plans[s.Dispatches[j].Plan]
			if plan.Kernel != "rms_norm" {
				continue
			}
			ns, _ := s.Dispatches[j].GPUNS.NS()
			sum += ns + slower
			if norms++; i == 2 {
				inStep2++
			}
			s.Dispatches[j].GPUNS = trace.Measured(ns + slower)
		}
	}
	base, path := write(t, before), write(t, after)
	got := flat(t, pprofTool(t, "-top", "-unit=ns", "-nodefraction=0", path), "rms_norm")
	if got != strconv.FormatInt(sum, 10)+"ns" {
		t.Errorf("rms_norm takes %s, want %dns", got, sum)
	}
	wastes := pprofTool(t, "-top", "-sample_index=workgroups_wasted", "-nodefraction=0", path)
	if got := flat(t, wastes, "rms_norm"); got != strconv.Itoa(norms) {
		t.Errorf("rms_norm wastes %s workgroups, want %d", got, norms)
	}
	diff := pprofTool(t, "-top", "-unit=ns", "-diff_base", base, path)
	if got := flat(t, diff, "rms_norm"); got != strconv.Itoa(norms*slower)+"ns" {
		t.Errorf("rms_norm became slower by %s, want %dns", got, norms*slower)
	}
	step := pprofTool(t, "-top", "-sample_index=dispatches", "-tagfocus=step=2:2", path)
	if got := flat(t, step, "rms_norm"); got != strconv.Itoa(inStep2) {
		t.Errorf("step 2 has %s dispatches of rms_norm, want %d", got, inStep2)
	}
}
