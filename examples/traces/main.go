// Command traces shows how another program reads gpuscope's traces. It has a module of its own, which uses
// gpuscope as a library.
//
//	go run . run.json               # rates, and the kernels that take most time
//	go run . before.json after.json # what changed between two runs
//	go run . -o short.jsonl.zst -last 10 run.json
//
// A program outside of this repository needs the same line in its go.mod: replace gpuscope => PATH.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/report/comparison"
	"io"
	"os"
)

func main() {
	out := flag.String("o", "", "write the last steps of the first trace to `FILE`; its suffix chooses the format")
	last := flag.Int("last", 10, "number of steps that -o writes")
	flag.Parse()
	err := errors.New("want one trace to summarize, or two to compare")
	switch {
	case flag.NArg() == 1 && *out != "":
		err = shorten(flag.Arg(0), *out, *last)
	case flag.NArg() == 1:
		err = summarize(context.Background(), os.Stdout, flag.Arg(0))
	case flag.NArg() == 2:
		err = compare(context.Background(), os.Stdout, flag.Arg(0), flag.Arg(1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "traces:", err)
		os.Exit(1)
	}
}

// summarize prints the rates of a run, and the five kernels that take most time in each phase.
func summarize(ctx context.Context, w io.Writer, path string) error {
	t, err := trace.ReadFile(path)
	switch {
	case errors.Is(err, trace.ErrNotTrace):
		return fmt.Errorf("%w: record one with gpuscope run --trace FILE", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(w, "%s on %s: %d steps\n", t.Model.Name, t.Device.Name, len(t.Steps))

	// Every list of a trace can be read directly. A time that was not measured is different from 0: for such
	// a time, the second result of NS is false.
	dispatches, timed := 0, 0
	var total int64
	for i := range t.Steps {
		for _, d := range t.Steps[i].Dispatches {
			dispatches++
			if ns, ok := d.GPUNS.NS(); ok {
				timed, total = timed+1, total+ns
			}
		}
	}
	fmt.Fprintf(w, "%d dispatches, %d of them timed: %.3f ms\n", dispatches, timed, float64(total)/1e6)

	x := analyze.NewIndex(t) // finds plans, operators and values of a dispatch
	p, err := rates.Of(ctx, x, x.All())
	if err != nil {
		return err
	}
	for _, r := range p.Rates {
		fmt.Fprintf(w, "%s: %d steps, %d tokens\n", r.Phase, r.Steps, r.Tokens)
	}
	printed := map[trace.Phase]int{}
	for i := range p.Kernels {
		k := &p.Kernels[i]
		if printed[k.Phase]++; printed[k.Phase] <= 5 {
			fmt.Fprintf(w, "  %s %s: %d dispatches, mean %.1f µs\n", k.Phase, k.Kernel, k.Count,
				k.MeanNS()/1e3)
		}
	}
	return nil
}

// compare prints the significant differences between the decode steps of two runs.
func compare(ctx context.Context, w io.Writer, before, after string) error {
	var sides [2]diff.Side
	for i, path := range []string{before, after} {
		t, err := trace.ReadFile(path)
		if err != nil {
			return err
		}
		x := analyze.NewIndex(t)
		sides[i] = diff.Side{Index: x, Selection: x.Phase(trace.Decode), Name: path}
	}
	d, err := diff.Of(ctx, sides[0], sides[1])
	if err != nil {
		return err
	}
	fmt.Fprintln(w, comparison.Headline(d))
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Times.Significant {
			fmt.Fprintf(w, "  %s %s: %+.1f µs\n", g.By, g.Name, g.Times.DeltaNS/1e3)
		}
	}
	return nil
}

// shorten writes the last n steps of a trace.
func shorten(path, out string, n int) error {
	t, err := trace.ReadFile(path)
	if err != nil {
		return err
	}
	first := max(0, len(t.Steps)-n)
	short := *t
	short.Plans = t.Plans // all of them, because the id of a plan is its index in this list
	short.Steps = append([]trace.Step(nil), t.Steps[first:]...)
	short.DroppedSteps += first
	if len(short.Steps) > 0 {
		s := &short.Steps[0] // a step states only what differs from the previous one
		s.Dims, s.Levels, s.Waits = trace.Inherited(t.Steps[:first+1])
	}
	if err := short.Check(); err != nil {
		return err
	}
	return trace.WriteFile(out, &short)
}
