//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// longRun returns a trace of 2,000 steps with about 300 dispatches each, including the grid arithmetic that
// the engine records for each plan.
func longRun() *trace.Trace {
	t := tracetest.Llama(15, 2000)
	for i := range t.Plans {
		p := &t.Plans[i]
		p.Grid = &trace.Grid{Rule: "rows", Terms: []trace.Term{{Name: "rows", Value: p.NeededGroups, Per: 1}}}
	}
	return t
}

// BenchmarkOpenTrace runs the program on the trace of a long run, in a terminal of 200x60. It moves through
// the rows, steps, selections and views, and quits. It reports the seconds until the first table appears and
// the peak memory of the process; the budget is 3 s and 300 MB. It also reports CPU seconds, because other
// programs on the machine affect the wall time.
func BenchmarkOpenTrace(b *testing.B) {
	for _, name := range []string{"run.json", "run.jsonl.gz"} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), name)
			if err := trace.WriteFile(path, longRun()); err != nil {
				b.Fatal(err)
			}
			var opened, cpu, resident []float64
			for b.Loop() {
				begun := time.Now()
				x := startTerminal(b, "refuse", path)
				if err := pty.Setsize(x.master, &pty.Winsize{Rows: 60, Cols: 200}); err != nil {
					b.Fatal(err)
				}
				x.expect(firstStep)
				opened = append(opened, time.Since(begun).Seconds())
				for _, keys := range strings.Fields("jjjGg FFFF ,,,, vvvv 1 3 4 5 2") {
					for _, k := range keys {
						x.press(string(k))
						time.Sleep(50 * time.Millisecond) // typing speed
					}
				}
				resident = append(resident, residentMB(x.cmd.Process.Pid))
				x.press("q")
				x.leaves(exitDone)
				u := x.cmd.ProcessState.SysUsage().(*syscall.Rusage)
				cpu = append(cpu, time.Duration(u.Utime.Nano()+u.Stime.Nano()).Seconds())
			}
			b.ReportMetric(slices.Max(opened), "open-s")
			b.ReportMetric(slices.Max(cpu), "cpu-s")
			if most := slices.Max(resident); most > 0 {
				b.ReportMetric(most, "peak-MB")
			}
			b.ReportMetric(0, "ns/op") // most of the time is waiting for keys
		})
	}
}

// residentMB returns the peak memory of a process so far, in MB of 1,000,000 bytes, or 0 if the system does
// not report it. After the process has ended, the reported value includes the process that started it.
func residentMB(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscanf(after, "%f kB", &kib); err != nil {
		return 0
	}
	return kib * 1024 / 1e6
}
