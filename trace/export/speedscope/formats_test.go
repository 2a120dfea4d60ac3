//go:build formats

package speedscope_test

import (
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/export/speedscope"
	"gpuscope/trace/tracetest"
)

func TestSpeedscopeShowsEveryDispatch(t *testing.T) {
	t.Parallel()
	run := tracetest.Llama(2, 6)
	for i := range run.Plans {
		run.Plans[i].NeededGroups--
	}
	// Names that JSON escapes, and dispatches that overlap or follow each other without a gap.
	odd := tracetest.Llama(1, 3)
	for i := range odd.Plans {
		if p := &odd.Plans[i]; p.Kernel == "rms_norm" {
			p.Kernel = "norm \"\n🔬"
		}
	}
	for i := range odd.Steps {
		list := odd.Steps[i].Dispatches
		for j := 1; j < len(list); j++ {
			start, _ := list[j-1].StartNS.NS()
			ns, _ := list[j-1].GPUNS.NS()
			list[j].StartNS = trace.Measured(start + ns*int64(j%3)/2) // at its start, within it, at its end
		}
	}
	untimed := exporttest.Untimed(tracetest.Llama(1, 3))
	traces := []*trace.Trace{run, odd, untimed}
	var files []string
	for _, tr := range traces {
		files = append(files, filepath.Join(t.TempDir(), "run.speedscope.json"))
		f, err := os.Create(files[len(files)-1])
		if err != nil {
			t.Fatal(err)
		}
		if err := speedscope.Format.Write(f, tr); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, shown := range exporttest.Speedscope(t, files...) {
		got := map[string]exporttest.Frame{}
		for _, p := range shown.Profiles {
			if queue(p.Name) {
				for name, f := range p.Frames {
					sum := got[name]
					got[name] = exporttest.Frame{
						Count: sum.Count + f.Count, Total: sum.Total + f.Total, Self: sum.Self + f.Self,
					}
				}
			}
			if p.Name == speedscope.WorkProfile {
				launched := new(big.Int)
				for _, s := range exporttest.TotalsOf(traces[i]).Steps {
					launched.Add(launched, s.Workgroups)
				}
				if p.Total != float64(launched.Int64()) || p.Unit != "none" {
					t.Errorf("%s: speedscope shows %v workgroups, want %d", files[i], p.Total, launched)
				}
			}
		}
		want := map[string]exporttest.Frame{}
		for j := range traces[i].Steps {
			for _, d := range traces[i].Steps[j].Dispatches {
				if ns, ok := d.GPUNS.NS(); ok {
					kernel := traces[i].Plans[d.Plan].Kernel
					sum := want[kernel]
					want[kernel] = exporttest.Frame{
						Count: sum.Count + 1, Total: sum.Total + float64(ns), Self: sum.Self + float64(ns),
					}
				}
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: speedscope shows %d kernels, want %d", files[i], len(got), len(want))
		}
		for kernel, f := range want {
			if got[kernel] != f {
				t.Errorf("%s: speedscope shows %+v for %q, want %+v", files[i], got[kernel], kernel, f)
			}
		}
	}
}
