package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/report/drawing"
	"gpuscope/trace/tracetest"
)

// graphOf returns the output of gpuscope graph for the embedded model, planned without a device.
func graphOf(t *testing.T, args string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := testProgram(&stdout, &stderr).main(t.Context(),
		strings.Fields("graph --device none "+args)); status != exitDone {
		t.Fatalf("exit %d: %s", status, &stderr)
	}
	return stdout.String()
}

func plannedDemo(t *testing.T, args string) (g struct {
	Model          trace.Model
	For            string
	AllocatedBytes map[string]int64 `json:"allocated_bytes"`
	Active, Levels []trace.DispatchID
	Passes         []graph.PassReport
	Graph          trace.Graph
},
) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(graphOf(t, args+" --format json")))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGraphAsTextListsEverything(t *testing.T) {
	t.Parallel()
	g := plannedDemo(t, "--context 64")
	parts := strings.Split(strings.TrimSpace(graphOf(t, "--context 64")), "\n\n")
	if len(parts) != 4 {
		t.Fatalf("%d parts, want a head, operators, dispatches and values", len(parts))
	}
	for i, n := range []int{len(g.Graph.Ops), len(g.Graph.Dispatches), len(g.Graph.Values)} {
		if lines := strings.Count(parts[i+1], "\n"); n == 0 || lines != n {
			t.Errorf("part %d has %d rows, the graph %d", i+1, lines, n)
		}
	}
	for _, facts := range []string{
		"demo llama 6 11.0 Q4_0 context 64 64", // the context and the largest step
		fmt.Sprintf("%d operators %d values %d dispatches %d %d levels", len(g.Graph.Ops),
			len(g.Graph.Values), len(g.Graph.Dispatches), len(g.Active), len(g.Levels)),
		"state 384 KiB", // 2 x 6 layers x 64 positions x 2 heads x 64 floats
	} {
		if !wordingtest.Mentions(errors.New(parts[0]), facts) {
			t.Errorf("the head does not contain %s:\n%s", facts, parts[0])
		}
	}
	if n := strings.Count(parts[2], "–"); n != len(g.Graph.Dispatches)-len(g.Active) {
		t.Errorf("%d dispatches without a level, %d do not run at the largest shapes", n,
			len(g.Graph.Dispatches)-len(g.Active))
	}
	for i, line := range strings.Split(parts[2], "\n")[1:] {
		d := &g.Graph.Dispatches[i]
		if name := d.Named(g.Graph.Ops[d.Op].Name); !strings.Contains(line, " "+name+" ") {
			t.Errorf("dispatch %d is not called %s:\n%s", i, name, line)
		}
	}
	if g.AllocatedBytes["state"] != 2*6*64*2*64*4 {
		t.Errorf("KV cache of %d bytes", g.AllocatedBytes["state"])
	}
	if half := plannedDemo(t, "--context 64 --kv f16"); 2*half.AllocatedBytes["state"] != g.AllocatedBytes["state"] {
		t.Errorf("in f16 a KV cache of %d bytes", half.AllocatedBytes["state"])
	}
}

// Every operator is drawn, and every edge connects two boxes that are drawn.
func TestGraphAsDOTDrawsEveryOperator(t *testing.T) {
	t.Parallel()
	text := graphOf(t, "--format dot")
	g := plannedDemo(t, "")
	nodes := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ +(\w+) \[label=`).FindAllStringSubmatch(text, -1) {
		nodes[m[1]] = true
	}
	for _, op := range g.Graph.Ops {
		if !nodes[fmt.Sprintf("op%d", op.ID)] {
			t.Errorf("operator %d is not drawn", op.ID)
		}
	}
	edges := regexp.MustCompile(`(\w+) -> (\w+)`).FindAllStringSubmatch(text, -1)
	if len(edges) < len(g.Graph.Ops) {
		t.Errorf("%d edges between %d operators", len(edges), len(g.Graph.Ops))
	}
	touched := map[string]bool{}
	for _, e := range edges {
		if !nodes[e[1]] || !nodes[e[2]] {
			t.Errorf("edge %s -> %s has an end that is not drawn", e[1], e[2])
		}
		touched[e[1]], touched[e[2]] = true, true
	}
	for n := range nodes { // includes operators that fusion removed
		if !touched[n] {
			t.Errorf("%s is drawn without an edge", n)
		}
	}
	if strings.Count(text, "{") != strings.Count(text, "}") ||
		strings.Count(text, "subgraph") != g.Model.Layers {
		t.Errorf("%d clusters for %d layers", strings.Count(text, "subgraph"), g.Model.Layers)
	}
}

func TestDOTGraphShowsWhoComputesFusedValues(t *testing.T) {
	t.Parallel()
	g := plannedGraph{Graph: tracetest.Llama(1, 1).Graph}
	id := func(name string) trace.OpID {
		return trace.OpID(slices.IndexFunc(g.Ops, func(o trace.Op) bool { return o.Name == name }))
	}
	maker := id("layers.0.mlp.gate")
	g.Ops[maker].Makes = g.Ops[id("layers.0.attn.add")].Outputs
	var text strings.Builder
	if err := drawing.DOT(&text, &g.Graph); err != nil {
		t.Fatal(err)
	}
	want := []string{fmt.Sprintf("op%d -> op%d [label=", maker, id("layers.0.mlp.add"))}
	got := regexp.MustCompile(`op\d+ -> op\d+ \[label=(?:.*style=dashed)`).FindAllString(text.String(), -1)
	for i, edge := range got {
		got[i] = edge[:strings.IndexByte(edge, '=')+1]
	}
	if !slices.Equal(got, want) { // the norm runs before mlp.gate, so it has no edge
		t.Errorf("edges from the operator that computes the sum are %q, want %q", got, want)
	}
}

func TestGraphNeedsNoAdapter(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	p := testProgram(&stdout, &stderr)
	p.driver = &fake.Driver{Err: errNoAdapterTest}
	if status := p.main(t.Context(), []string{"graph"}); status != exitDone ||
		!strings.Contains(stdout.String(), "planned for no device") {
		t.Errorf("exit %d: %s", status, &stderr)
	}
}

func TestGraphSaysWhatEachPassDid(t *testing.T) {
	t.Parallel()
	g := plannedDemo(t, "")
	text := graphOf(t, "--passes")
	for _, p := range g.Passes {
		if p.Took <= 0 || !strings.Contains(text, "\n"+p.Name+" ") || !strings.Contains(text, p.Doc) {
			t.Errorf("pass %+v is not in\n%s", p, text)
		}
		for _, c := range p.Counts {
			if want := fmt.Sprintf("%s %d → %d", c.What, c.Before, c.After); !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
	want := fmt.Sprintf("dispatches 0 → %d", len(g.Graph.Dispatches))
	if !strings.Contains(text, want) || strings.Count(text, "\n") != 4+2+len(g.Passes) {
		t.Errorf("want %q and a line for each pass:\n%s", want, text)
	}
}

func TestGraphShowsWhatAPassChanged(t *testing.T) {
	t.Parallel()
	text := graphOf(t, "--pass fuse")
	for _, want := range []string{
		"- op layers.0.attn.add (add): embed, layers.0.attn.o -> layers.0.attn.add\n",
		"+ op layers.0.attn.o+add (linear_q4gsw): ",
		"- value layers.0.attn.o: intermediate f32 [1 512 384]\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if text := graphOf(t, "--pass fuse --fuse off"); strings.Contains(text, "\n+") {
		t.Errorf("--fuse off fused something:\n%s", text)
	}
}
