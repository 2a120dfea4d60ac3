package tui

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

// huge returns a trace of a model with 64 layers: 400 steps with about 1,300 dispatches each.
func huge() *trace.Trace { return tracetest.Llama(64, 400) }

// BenchmarkView measures Update and View: a key that moves the cursor and the frame after it, while jobs are
// running. The budget of a frame at 200x60 is 8 ms.
func BenchmarkView(b *testing.B) {
	for _, c := range []struct {
		name  string
		trace *trace.Trace
	}{
		{"small", llama},
		{"huge", huge()},
		{"dispatches=100000", tracetest.Llama(5000, 2)},
		{"steps=100000", tracetest.Llama(1, 100000)},
	} {
		for _, size := range [][2]int{{80, 24}, {200, 60}} {
			for _, view := range viewKeys() {
				b.Run(fmt.Sprintf("%s/%dx%d/view%s", c.name, size[0], size[1], view), func(b *testing.B) {
					d := drive(b, size[0], size[1], c.trace, nil, Options{Color: "true"})
					for range 5000 {
						d.app.log.Add("info", "a line of the log that says something")
					}
					d.press(view, "F", "F", "F")
					b.ReportAllocs()
					var frames []time.Duration
					for i := 0; b.Loop(); i++ {
						begun := time.Now()
						d.touch([]string{"j", "k"}[i%2])
						frames = append(frames, time.Since(begun))
						d.settle()
					}
					slices.Sort(frames)
					at := frames[len(frames)*99/100]
					b.ReportMetric(float64(at.Microseconds())/1000, "p99-frame-ms")
				})
			}
		}
	}
}

// everyKind lists keys of every kind. After each list of keys the screen is the same as before.
var everyKind = []struct{ name, view, keys string }{
	{"move", "2", "j j j k G g pgdown pgup ctrl+d ctrl+u g"},
	{"filter", "2", "/ n o r m enter n N / backspace esc esc"},
	{"sort", "2", "o s o s o k O o space"},
	{"group", "2", "F F F F enter enter h l"},
	{"step", "2", ", . [ ]"},
	{"selection", "2", "v v V V"},
	{"baseline", "2", "b , b . b u"},
	{"undo", "2", "F u o s u / a esc u"},
	{"zoom", "2", "z z < >"},
	{"detail", "2", "tab j j k tab"},
	{"explain", "2", "w esc e esc ? esc"},
	{"views", "2", "1 2 3 4 5 0 2"},
	{"Step", "1", "j k g G pgup pgdown m ] ["},
	{"Resize", "3", "j enter j j enter g , ."},
	{"Graph", "4", "j j pgdown enter F F A A a a a g p esc"},
	{"Curves", "5", "j k l h a a d d d d + -"},
	{"Timeline", "6", "G l h j j k h + + + + l l h pgup pgdown - - - - - / n o r m enter n N n esc enter + - esc k G"},
}

// BenchmarkUpdateView measures how long a person waits at 200x60: Update and View after a key, and after the
// result of each job that the key started. One run has 2,000 steps with about 300 dispatches each, and a
// budget of 8 ms for the 99th percentile. The other run has a step with 100,000 dispatches, and a budget of
// 16 ms. p99-ready is the time until everything that the key asked for is shown; until then the screen shows
// the old content. p99-cpu is the 99th percentile of CPU time, which is meaningful on a busy machine too.
func BenchmarkUpdateView(b *testing.B) {
	runs := []struct {
		name string
		wide bool // jobs are slow, so one grouping is enough
		make func() *trace.Trace
	}{
		{"steps=2000", false, func() *trace.Trace { return tracetest.Llama(15, 2000) }},
		{"dispatches=100000", true, func() *trace.Trace { return tracetest.Llama(5000, 2) }},
	}
	for _, run := range runs {
		b.Run(run.name, func(b *testing.B) {
			recorded := run.make()
			for _, c := range everyKind {
				for _, fold := range []int{0, 3} { // presses of F: by layer, and every dispatch
					if fold > 0 && (c.view != "2" || run.wide) {
						continue
					}
					b.Run(fmt.Sprintf("%s/fold%d", c.name, fold), func(b *testing.B) {
						benchmarkKeys(b, recorded, c.view, c.keys, fold)
					})
				}
			}
		})
	}
}

func benchmarkKeys(b *testing.B, recorded *trace.Trace, view, keys string, fold int) {
	runtime.LockOSThread() // cpuTime measures this thread
	defer runtime.UnlockOSThread()
	d := drive(b, 200, 60, recorded, nil, Options{Color: "true"}).press(view)
	for range fold {
		d.press("F")
	}
	d.frames, d.cpu = nil, nil
	var ready []time.Duration
	for b.Loop() {
		for _, k := range strings.Fields(keys) {
			begun := time.Now()
			d.press(k)
			ready = append(ready, time.Since(begun))
		}
	}
	report := func(what string, took []time.Duration, p int) {
		slices.Sort(took)
		if len(took) > 0 {
			b.ReportMetric(float64(took[len(took)*p/100].Microseconds())/1000, what)
		}
	}
	b.ReportMetric(0, "ns/op")
	report("p50-ms", d.frames, 50)
	report("p99-ms", d.frames, 99)
	report("p99-cpu-ms", d.cpu, 99)
	report("p99-ready-ms", ready, 99)
}

// BenchmarkStep measures the time that the screen needs for one more step of a running model.
func BenchmarkStep(b *testing.B) {
	for _, view := range []string{"1", "2", "3"} {
		b.Run("view"+view, func(b *testing.B) {
			d := drive(b, 200, 60, tracetest.Llama(16, 300), &tuitest.Script{}, Options{Prompt: "once"})
			d.settle()
			d.press(view)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if d.app.mirror.State.Ended {
					b.StopTimer()
					d.press("X", "i", "a", "enter")
					b.StartTimer()
				}
				d.press("s")

			}
		})
	}
}

func TestAKeyPressAllocatesLittle(t *testing.T) {
	d := drive(t, 80, 24, llama, nil, Options{Color: "true"}).press("2")
	i := 0
	n := testing.AllocsPerRun(100, func() {
		d.touch([]string{"j", "k"}[i%2])

		i++
	})
	if n > 4000 { // about 2,000 are for table cells, computed on demand
		t.Errorf("%.0f allocations for a key and its frame", n)
	}
}

// BenchmarkPlainRunOf10000Steps measures plain mode, which prints a line for every step.
func BenchmarkPlainRunOf10000Steps(b *testing.B) {
	recorded := tracetest.Llama(1, 10000)
	for b.Loop() {
		open := func(context.Context) (session.Session, error) {
			return tuitest.Play(recorded, tuitest.Script{}), nil
		}
		err := Run(context.Background(), open,
			Options{Plain: true, Prompt: "once", Output: io.Discard, Input: strings.NewReader("r\n")})
		if err != nil {
			b.Fatal(err)
		}
	}
}
