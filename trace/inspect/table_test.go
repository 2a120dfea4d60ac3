package inspect_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

var ctx = context.Background()

// dispatched is the dispatch table of a step.
func dispatched(x *inspect.Index, step int, o inspect.Options) *inspect.DispatchTable {
	o.Scope = x.Step(step)
	d, err := x.Dispatches(ctx, o)
	if err != nil {
		panic(err)
	}
	return d
}

func baseOf(x *inspect.Index, step int) *inspect.Base {
	return &inspect.Base{Index: x, Scope: x.Step(step)}
}

func detail(x *inspect.Index, step int, id trace.DispatchID, base *inspect.Base) *inspect.Detail {
	d, err := x.Detail(ctx, step, id, base)
	if err != nil {
		panic(err)
	}
	return d
}

func resized(x *inspect.Index, step int) *table.Table {
	t, err := x.Resized(ctx, step)
	if err != nil {
		panic(err)
	}
	return t.Table
}

func profile(tr *trace.Trace) *inspect.Profile {
	p, err := inspect.NewIndex(tr).Profile(ctx, inspect.Scope{})
	if err != nil {
		panic(err)
	}
	return p
}

// printed is a table as text, with the rows that are open at first.
func printed(t *testing.T, tab *table.Table, s table.Selection, width int) []byte {
	t.Helper()
	rows, err := tab.Select(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tab.Print(ctx, &b, "text", rows, width); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode is the index of a decode step with repeats, and that of the step before.
func decode(t *testing.T) (x *inspect.Index, step int, base *inspect.Base) {
	t.Helper()
	x = inspect.NewIndex(tracetest.Llama(16, 18))
	return x, 17, baseOf(x, 16)
}

func TestDispatchesOfADecodeStepFoldedByLayer(t *testing.T) {
	x, step, base := decode(t)
	golden.RequireEqual(t,
		printed(t, dispatched(x, step, inspect.Options{Base: base}).Table, table.Selection{}, 140))
}

func TestProfileOfARun(t *testing.T) {
	golden.RequireEqual(t,
		printed(t, profile(tracetest.Run(16, 40, 1, 1, 1, 7, 1)).Table(), table.Selection{}, 80))
}

func TestStepsTable(t *testing.T) {
	x := inspect.NewIndex(tracetest.Run(16, 40, 1, 1, 7, 1))
	golden.RequireEqual(t,
		printed(t, x.Steps(inspect.Scope{}, nil), table.Selection{}, 200))
}

// lines are what a person reads, as a golden file.
func lines(list []string) []byte { return []byte(strings.Join(list, "\n") + "\n") }

func TestResizeOfASteadyDecodeStepIsALineForEachOperator(t *testing.T) {
	x := inspect.NewIndex(tracetest.Llama(2, 5))
	golden.RequireEqual(t, printed(t, resized(x, 4), table.Selection{}, 140))
}

func TestResizeFromPrefillToDecode(t *testing.T) {
	x := inspect.NewIndex(tracetest.Llama(1, 2))
	golden.RequireEqual(t, printed(t, resized(x, 1), table.Selection{All: true}, 140))
}

func TestWhyAGridGrewWithTheContext(t *testing.T) {
	x := inspect.NewIndex(tracetest.Llama(4, 26))
	var out []string
	for step := 22; step < 25; step++ {
		out = append(out, x.Why(step, dispatch(t, x, "layers.3.attn.sdpa.split")).Lines("")...)
	}
	golden.RequireEqual(t, lines(out))
}

func TestWhyAGridFollowsTheTokenCountThroughAllLayers(t *testing.T) {
	x := inspect.NewIndex(tracetest.Llama(16, 5))
	golden.RequireEqual(t, lines(x.Why(4, dispatch(t, x, "layers.15.mlp.down")).Lines("")))
}

func TestDetailOfADispatch(t *testing.T) {
	x, step, base := decode(t)
	var out []string
	for _, name := range []string{
		"layers.2.attn.sdpa.split", "layers.0.mlp.down", "embed",
		"layers.1.attn.rope_k",
	} {
		out = append(out, detail(x, step, dispatch(t, x, name), base).Lines()...)
		out = append(out, "")
	}
	golden.RequireEqual(t, lines(out))
}

// dispatch finds a dispatch by name.
func dispatch(t *testing.T, x *inspect.Index, name string) trace.DispatchID {
	t.Helper()
	for _, d := range x.Trace.Graph.Dispatches {
		if x.Name(d.ID) == name {
			return d.ID
		}
	}
	t.Fatalf("no dispatch %s", name)
	return 0
}
