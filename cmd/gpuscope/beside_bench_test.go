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

// pace is how a model runs beside the screen: its timing level, and the steps of a second.
type pace struct {
	level string
	steps int
}

// paces are those of a Llama of 1B on an H200; its steps are pipelined where no dispatch is timed.
var paces = []pace{{"dispatch", 100}, {"step", 1100}}

// paced makes the name of a pace for playEnv.
const paced = "paced "

// pacing opens models on a device that computes nothing and that takes so many steps a second. A step that is
// late is made up for.
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
				due = time.Now() // nothing ran
			}
			time.Sleep(time.Until(due))
		}
		driver.Opened[0].OnRead = func(_ string, _ uint64, dst []byte) {
			for i := range dst {
				dst[i] = 0 // a token that ends nothing
			}
		}
		return s, nil
	}
}

// BenchmarkBeside is what the screen's process takes of a core while a model runs, in a terminal of 200x60:
// the engine, on a device that computes nothing, with as many layers as a Llama of 1B. The budget is 10 %.
// To see the same of a real model, look at the time of the process that a terminal has started while it runs.
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
				b.ReportMetric(0, "ns/op") // most of it is waiting
			})
		}
	}
}

// beside is what a screen takes: of a core in percent, ms for each step, and MB at the most.
func beside(b *testing.B, model string, p pace, view string) (core, each, resident float64) {
	x := startTerminal(b, paced+strconv.Itoa(p.steps), model, "--timing", p.level, "--context", "16384",
		"--ignore-eos", "-p", "Once")
	if err := pty.Setsize(x.master, &pty.Winsize{Rows: 60, Cols: 200}); err != nil {
		b.Fatal(err)
	}
	x.expect("step 0 prefill")
	time.Sleep(time.Second) // and the command has ended
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

// processSeconds is how long a process has had a processor.
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
	return float64(user+system) / 100 // ticks of every Linux
}
