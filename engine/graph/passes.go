package graph

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Builder records operators, and Finish turns them into a graph by running the passes of a table in order.
// Each pass makes one kind of change to the whole graph, lists the earlier passes that it depends on, and
// reports its changes.

// pass is a row of the table of passes.
type pass struct {
	name string
	doc  string
	// needs holds the names of the passes that must run before this one.
	needs []string
	// run performs the pass. The notes describe those changes that the counts of the pass report do not show.
	run func(b *Builder, g *Graph) (notes []string, err error)
}

// passes lists the passes in the order in which Finish runs them.
var passes = []pass{
	{
		"types", "check the type of every value against the kernels that read it", nil,
		func(b *Builder, _ *Graph) ([]string, error) { return nil, b.checkTypes() },
	},
	{
		"fuse", "fuse groups of operators, using the selected rules",
		[]string{"types"},
		func(b *Builder, g *Graph) ([]string, error) {
			notes, err := b.fuse()
			g.take(b)
			return notes, cmp.Or(err, b.unasked())
		},
	},
	{
		"alias", "let views share memory with their inputs",
		[]string{"fuse"},
		func(_ *Builder, g *Graph) ([]string, error) {
			g.settleAliases()
			return nil, nil
		},
	},
	{
		"levels", "find each dispatch's earliest level; delay dispatches that read no computed value",
		[]string{"alias"},
		func(_ *Builder, g *Graph) ([]string, error) {
			g.findLevels()
			return nil, nil
		},
	},
	{
		"order", "submit dispatches level by level, so that independent ones run side by side",
		[]string{"levels"},
		func(_ *Builder, g *Graph) ([]string, error) {
			g.order()
			return nil, nil
		},
	},
	{
		"memory", "let intermediates share memory where this adds no barrier",
		[]string{"order"},
		func(b *Builder, g *Graph) ([]string, error) {
			err := g.planMemory(b.passBytes)
			g.joinOutputs()
			return nil, err
		},
	},
	{
		"names", "give each kernel in use a unique name",
		[]string{"fuse", "order"},
		func(_ *Builder, g *Graph) ([]string, error) {
			g.collectKernels()
			g.nameKernels()
			return nil, nil
		},
	},
}

// PassReport describes the changes that a pass of Finish made.
type PassReport struct {
	Name string        `json:"name"`
	Doc  string        `json:"doc"`
	Took time.Duration `json:"ns"`
	// Counts holds only those counts that are different after the pass.
	Counts []PassCount `json:"changed,omitempty"`
	Notes  []string    `json:"notes,omitempty"`
	// Before and After are listings of the graph. They are nil unless DumpPass selected this pass.
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// PassCount is a count that describes a graph, such as its number of dispatches, before and after a pass.
type PassCount struct {
	What   string `json:"what"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
}

// Passes returns a report for each pass of Finish.
func (g *Graph) Passes() []PassReport { return g.passes }

// Finish runs the passes and returns the graph. It returns the builder's first error if there is one. The
// builder cannot be used afterwards.
func (b *Builder) Finish() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	if len(b.ops) == 0 {
		return nil, fmt.Errorf("the graph has no operators")
	}
	g := &Graph{Limits: b.limits, outputs: b.outputs}
	g.take(b)
	before := g.counts()
	for i := range passes {
		p := &passes[i]
		var listed []string
		if b.dump == p.name {
			listed = g.list()
		}
		start := time.Now()
		notes, err := p.run(b, g)
		took := time.Since(start)
		if err != nil {
			b.err = err
			return nil, err
		}
		after := g.counts()
		report := PassReport{Name: p.name, Doc: p.doc, Took: took, Notes: notes, Before: listed}
		if b.dump == p.name {
			report.After = g.list()
		}
		for j := range after {
			if before[j].After != after[j].After {
				after[j].Before = before[j].After
				report.Counts = append(report.Counts, after[j])
			}
		}
		g.passes, before = append(g.passes, report), after
	}
	b.err = fmt.Errorf("the builder is already finished")
	return g, nil
}

// take moves the builder's operators and values to the graph.
func (g *Graph) take(b *Builder) {
	g.Values, g.Ops = b.values, b.ops
	g.inputs, g.symOps = g.inputs[:0], make([]bool, len(g.Ops))
	for v := range g.Values {
		if g.Values[v].Role == Input {
			g.inputs = append(g.inputs, ValueID(v))
		}
	}
	for o := range g.Ops {
		g.symOps[o] = g.symOnly(&g.Ops[o])
	}
}

// counts returns the graph's counts at this moment, in the field After of each PassCount.
func (g *Graph) counts() []PassCount {
	var fused, aliases, levels, passes int64
	for i := range g.Values {
		if g.Values[i].Role == Fused {
			fused++
		}
		if g.Values[i].Alias != None {
			aliases++
		}
	}
	for i := range g.Dispatches {
		levels = max(levels, int64(g.Dispatches[i].Level)+1)
	}
	slots := int64(0)
	for i := range g.Layouts {
		slots += int64(len(g.Layouts[i].Slots))
	}
	if len(g.Layouts) > 0 {
		passes = int64(slices.Max(append([]int{0}, g.Layouts[0].passes...))) + 1
	}
	list := []PassCount{
		{What: "operators", After: int64(len(g.Ops))},
		{What: "values fused away", After: fused},
		{What: "aliases", After: aliases},
		{What: "dispatches", After: int64(len(g.Dispatches))},
		{What: "dependency levels", After: levels},
		{What: "compute passes (maximum)", After: passes},
		{What: "layouts", After: int64(len(g.Layouts))},
		{What: "slots", After: slots},
		{What: "kernels", After: int64(len(g.Kernels))},
	}
	bytes := g.AllocatedBytes()
	return append(list, PassCount{What: "shared bytes", After: bytes[SharedMemory]})
}

// checkTypes returns an error if a value is bound to a kernel that expects another element type. That kernel
// would misinterpret the value's bits.
func (b *Builder) checkTypes() error {
	for i := range b.ops {
		if err := b.checkOpTypes(&b.ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) checkOpTypes(o *Op) error {
	for _, slot := range o.Spec.Slots {
		for _, use := range slot.Uses {
			if use.Kernel == nil {
				continue
			}
			for i, s := range use.Kernel.Storage {
				val := &b.values[use.Bind[i].Value]
				if val.Kind == Tensor && !s.Takes(val.DType) {
					return fmt.Errorf(
						"%s (%s): the value %s has type %s, but kernel %s expects %s for its binding %s",
						o.Name, o.Spec.Kind, val.Name, val.DType, use.Kernel.Name, s.Elem, s.Name)
				}
			}
		}
	}
	return nil
}
