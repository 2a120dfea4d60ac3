package graph_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
)

// worked returns the worked example of docs/internals/engine.md: a block with a norm, a product with two
// routes, and a residual is resized from 512 tokens to 7 and to 1.
func worked(t *testing.T) string {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	sum := graphtest.AddOp(b, "sum", x, graphtest.Routed(b, "product", graphtest.Unary(b, "norm", x)))
	g := graphtest.Finish(t, b, sum)
	l := graphtest.NewLive(t, g, graph.LiveOptions{})
	var page strings.Builder
	for _, tokens := range []int{7, 1} {
		was := l.Dims(x)[0]
		if err := l.SetDims(x, tokens, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		if err := l.Propagate(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&page, "%d tokens, before %d: x is [%d %d]\n", tokens, was, tokens, graphtest.Width)
		for _, h := range l.Hooks() {
			gives := "no new dims"
			for _, v := range h.Changed {
				if g.Values[v].Role != graph.Scratch {
					gives = fmt.Sprint("gives ", l.NextDims(v))
				}
			}
			fmt.Fprintf(&page, "  %s, woken by %s, %s\n", h.Op, strings.Join(h.Triggers, " and "), gives)
			for _, p := range h.Plans {
				d := &g.Dispatches[p.Dispatch]
				name := g.Ops[d.Op].Spec.Slots[d.Slot].Label
				if name == "" {
					name = h.Op
				}
				fmt.Fprintf(&page, "    %-8s %s -> %s\n", name, workedLaunch(p.Before), workedLaunch(p.After))
			}
		}
		l.Commit()
		fmt.Fprintf(&page, "  %d dispatches in %d levels, %d live bytes of %d\n", len(l.Active()),
			len(l.Levels()), l.LiveBytes(), workedAllocated(g))
	}
	return page.String()
}

func workedLaunch(p *graph.LaunchRun) string {
	if p == nil {
		return "absent"
	}
	var fields []string
	for at := 0; at < len(p.Params); at += 4 {
		fields = append(fields, fmt.Sprint(binary.LittleEndian.Uint32(p.Params[at:])))
	}
	return fmt.Sprintf("%s, %d groups, params %s", p.Kernel, p.Grid.Workgroups(), strings.Join(fields, " "))
}

func workedAllocated(g *graph.Graph) (n int64) {
	for _, bytes := range g.AllocatedBytes() {
		n += bytes
	}
	return n
}

func TestWorkedResizeOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/internals/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := worked(t); !strings.Contains(string(page), "```\n"+got+"```\n") {
		t.Errorf("docs/internals/engine.md does not have this resize:\n%s", got)
	}
}
