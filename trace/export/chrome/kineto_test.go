package chrome_test

import (
	"bytes"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/chrome"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/tracetest"
)

func asKineto(t tester, e trace.Export, tr *trace.Trace) (file, string) {
	t.Helper()
	return written(t, func(b *bytes.Buffer) error { return e.Write(b, tr) })
}

func TestKinetoTotalsAreThoseOfTheTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		tr := tracetest.Random(r)
		f, _ := asKineto(r, chrome.Kineto, tr)
		want := exporttest.TotalsOf(tr)
		if n, ns := f.sum("kernel"); n != want.Timed || ns.Cmp(want.GPU) != 0 {
			r.Fatalf("%d kernels of %v ns, want %d of %v ns", n, ns, want.Timed, want.GPU)
		}
		_, phases, _, phaseNS := hostTotals(tr)
		if n, ns := f.sum("privateuse1_runtime", "cpu_op"); n != phases || ns.Cmp(phaseNS) != 0 {
			r.Fatalf("%d phases of %v ns, want %d of %v ns", n, ns, phases, phaseNS)
		}
	})
}

func TestHTAFindsKernelsLaunchesAndSteps(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 4)
	for format, launches := range map[*trace.Export]string{
		&chrome.Kineto: "wgpuDispatch", &chrome.HTA: "cudaLaunchKernel",
	} {
		f, text := asKineto(t, *format, tr)
		// HTA's own expressions for the rank and for the step.
		if m := regexp.MustCompile(`"rank":\s+(\d+)`).FindStringSubmatch(text); m == nil || m[1] != "0" {
			t.Errorf("%s: the rank is %q", format.Name, m)
		}
		var steps []int
		kernels, hosts := map[int]bool{}, map[int]bool{}
		windows := new(big.Int)
		for _, e := range f.TraceEvents {
			number, step := strings.CutPrefix(e.Name, "ProfilerStep#")
			switch {
			case e.Cat == "":
				continue
			case step:
				n, err := strconv.Atoi(number)
				if err != nil {
					t.Error(err)
				}
				steps = append(steps, n)
				if e.Args.DurNS != nil {
					ns, _ := new(big.Int).SetString(e.Args.DurNS.String(), 10)
					windows.Add(windows, ns)
				}
			case e.Cat == "kernel":
				if e.Args.Stream == nil || e.Args.Correlation == nil || *e.Args.Stream < 0 {
					t.Fatalf("HTA does not take this for GPU work: %+v", e)
				}
				kernels[*e.Args.Correlation] = true
			case e.Name == launches:
				hosts[*e.Args.Correlation] = true
			}
			if e.Cat != "kernel" && e.Args.Stream != nil {
				t.Errorf("HTA takes this for GPU work: %+v", e)
			}
		}
		if len(steps) != len(tr.Steps)+1 || steps[len(steps)-1] != len(tr.Steps) {
			t.Errorf("%s: steps %v, want one more than in the trace", format.Name, steps)
		}
		if _, _, want, _ := hostTotals(tr); windows.Cmp(want) != 0 {
			t.Errorf("%s: steps of %v ns, want %v ns", format.Name, windows, want)
		}
		if len(kernels) != exporttest.TotalsOf(tr).Timed || len(hosts) != len(kernels) {
			t.Errorf("%s: %d kernels, %d launches", format.Name, len(kernels), len(hosts))
		}
		for c := range kernels {
			if !hosts[c] {
				t.Errorf("%s: kernel %d has no launch", format.Name, c)
			}
		}
	}
}
