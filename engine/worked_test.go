package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// worked is the resize that docs/engine.md goes through: a block of a norm, a product with two routes, and a
// residual, from 512 tokens to 7 and to 1.
func worked(t *testing.T) string {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	sum := addOp(b, "sum", x, routed(b, "product", unary(b, "norm", x)))
	l := newLive(t, finish(t, b, sum), LiveOptions{})
	var page strings.Builder
	for _, tokens := range []int{7, 1} {
		was := l.Dims(x)[0]
		if err := l.SetDims(x, tokens, width); err != nil {
			t.Fatal(err)
		}
		if err := l.Propagate(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&page, "%d tokens, before %d: x is [%d %d]\n", tokens, was, tokens, width)
		change, plan, trigger, param := 0, 0, 0, 0
		for _, h := range l.log.hooks {
			var woken []string
			for ; trigger < h.triggerEnd; trigger++ {
				woken = append(woken, l.g.values[l.log.triggers[trigger]].name)
			}
			gives := "no new dims"
			for ; change < h.changeEnd; change++ {
				if v := l.log.changes[change].value; l.g.values[v].role != Scratch {
					gives = fmt.Sprint("gives ", l.next.dims[v])
				}
			}
			fmt.Fprintf(&page, "  %s, woken by %s, %s\n", l.g.ops[h.op].name, strings.Join(woken, " and "),
				gives)
			for ; plan < h.planEnd; plan++ {
				p := &l.log.plans[plan]
				name := l.g.ops[h.op].spec.Slots[l.g.dispatches[p.dispatch].slot].Label
				if name == "" {
					name = l.g.ops[h.op].name
				}
				before, params := l.plans[h.op].record(l.g.dispatches[p.dispatch].slot, nil)
				fmt.Fprintf(&page, "    %-8s %s -> %s\n", name,
					workedLaunch(l.g, p.dispatch, &before, params),
					workedLaunch(l.g, p.dispatch, &p.to, l.log.params[param:p.to.paramsEnd]))
				param = p.to.paramsEnd
			}
		}
		l.Commit()
		fmt.Fprintf(&page, "  %d dispatches in %d levels, %d live bytes of %d\n", len(l.Active()),
			len(l.Levels()), l.LiveBytes(), workedAllocated(l.g))
	}
	return page.String()
}

func workedLaunch(g *Graph, d trace.DispatchID, p *launchRecord, params []byte) string {
	if !p.active {
		return "absent"
	}
	var fields []string
	for at := 0; at < len(params); at += 4 {
		fields = append(fields, fmt.Sprint(binary.LittleEndian.Uint32(params[at:])))
	}
	kernel := g.ops[g.dispatches[d].op].use(g.dispatches[d].slot, p.route).Kernel.Name
	return fmt.Sprintf("%s, %d groups, params %s", kernel, p.grid.Workgroups(), strings.Join(fields, " "))
}

func workedAllocated(g *Graph) (n int64) {
	for _, bytes := range g.AllocatedBytes() {
		n += bytes
	}
	return n
}

func TestWorkedResizeOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := worked(t); !strings.Contains(string(page), "```\n"+got+"```\n") {
		t.Errorf("docs/engine.md does not have this resize:\n%s", got)
	}
}
