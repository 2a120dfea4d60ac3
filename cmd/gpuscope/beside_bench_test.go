//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"gpuscope/engine/gpu/fake"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/session"
)

// pace is the speed of a model that runs next to the screen: its timing level and its steps per second.
type pace struct {
	level string
	steps int
}

// paces are the speeds of a 1B Llama on an H200. Its steps are pipelined unless each dispatch is timed.
var paces = []pace{{"dispatch", 100}, {"step", 1100}}

// paced is the prefix of the values of playEnv that select a pace.
const paced = "paced "

// pacing opens models on a fake device that computes nothing and runs the given number of steps per second.
// After a late step the next ones start earlier, to keep the average rate.
func pacing(p *program, steps int) opener {
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	p.driver = driver
	return func(ctx context.Context, o *modelOptions, emit func(session.Event)) (session.Session, error) {
		s, err := p.openModel(ctx, o, emit)
		if err != nil {
			return nil, err
		}
		due := time.Now()
		driver.Opened[0].OnDispatch = func(d fake.Dispatch) {
			if !strings.Contains(d.Pipeline, "embedding") {
				return
			}
			if due = due.Add(time.Second / time.Duration(steps)); time.Until(due) < -time.Second {
				due = time.Now() // after a pause, do not catch up
			}
			time.Sleep(time.Until(due))
		}
		driver.Opened[0].OnRead = func(_ string, _ uint64, dst []byte) {
			for i := range dst {
				dst[i] = 0 // never an end-of-text token
			}
		}
		return s, nil
	}
}

// BenchmarkBeside measures how much of a CPU core the screen's process uses while a model runs, in a terminal
// of 200x60. The engine runs on a fake device that computes nothing, with as many layers as a 1B Llama. The
// budget is 10 % of a core. To measure the same with a real model, read the CPU time of the process that was
// started in the terminal while the model runs.
func BenchmarkBeside(b *testing.B) {
	small := gguftest.HollowLlama(gguftest.Shape{
		Layers: gguftest.Llama1B.Layers, Dim: 128, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 256, Vocab: 300,
	})
	small.ByteTokenizer(300)
	path := filepath.Join(b.TempDir(), "small.gguf")
	if err := small.WriteSparse(path); err != nil {
		b.Fatal(err)
	}
	for _, p := range paces {
		for _, view := range strings.Fields("1 2 3 4 5") {
			b.Run(fmt.Sprintf("%s/view%s", p.level, view), func(b *testing.B) {
				var core, each, resident []float64
				for b.Loop() {
					c, e, r := beside(b, path, p, view)
					core, each, resident = append(core, c), append(each, e), append(resident, r)
				}
				b.ReportMetric(slices.Max(core), "core-%")
				b.ReportMetric(slices.Max(each), "cpu-ms/step")
				b.ReportMetric(slices.Max(resident), "peak-MB")
				b.ReportMetric(0, "ns/op") // most of the time is waiting
			})
		}
	}
}

// beside returns what the screen uses: percent of a core, CPU time per step in ms, and peak memory in MB.
func beside(b *testing.B, model string, p pace, view string) (core, each, resident float64) {
	x := startTerminal(b, paced+strconv.Itoa(p.steps), model, "--timing", p.level, "--context", "16384",
		"--ignore-eos", "-p", "Once")
	if err := pty.Setsize(x.master, &pty.Winsize{Rows: 60, Cols: 200}); err != nil {
		b.Fatal(err)
	}
	x.expect("step 0 prefill")
	time.Sleep(time.Second) // until the command has ended
	x.press(view + " ")
	x.expect("[RUNNING")
	time.Sleep(2 * time.Second)
	from, begun, had := x.lastStep(), time.Now(), processSeconds(b, x.cmd.Process.Pid)
	time.Sleep(10 * time.Second)
	took, lasted := processSeconds(b, x.cmd.Process.Pid)-had, time.Since(begun).Seconds()
	steps := x.lastStep() - from
	resident = residentMB(x.cmd.Process.Pid)
	x.press("\x03")
	x.expect("again to quit")
	x.press("\x03")
	x.leaves(exitDone)
	b.Logf("%d steps in %.1f s", steps, lasted)
	return 100 * took / lasted, 1000 * took / float64(steps), resident
}

// processSeconds returns the CPU time of a process in seconds.
func processSeconds(t testing.TB, pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skip(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("%q", stat)
	}
	return float64(user+system) / 100 // Linux counts CPU time in ticks of 10 ms
}
