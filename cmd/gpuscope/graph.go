package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
)

func graphCommand() *command {
	return &command{
		name: "graph", operand: "[MODEL]…",
		doc: "print a model's graph: operators, values, dispatches, memory",
		more: `The graph is planned, not run: shapes and grids are the largest that the context and the chunk allow. With
--at M,POS it is the dispatches of a step of M tokens at position POS.
Without a device, or with --device none, it is planned against the limits that every WebGPU device grants.
Of a file that cannot be planned, whatever its types and architecture, it is what --metadata prints, with why.
Of ExecuTorch programs (.pte, .bpte; several are listed together) it prints methods, delegates and what is in those of
the Vulkan backend. Weights are looked up in the .ptd files of --data, or otherwise of the program's folder.`,
		examples: []example{
			{"gpuscope graph", "the embedded model"},
			{"gpuscope graph --device none --max-chunk 128", "on no device, for shorter prefill steps"},
			{"gpuscope graph --at 1,638", "what a decode step at position 638 launches"},
			{"gpuscope graph --format dot | dot -Tsvg > graph.svg", "a drawing, with Graphviz"},
			{"gpuscope graph --metadata model.gguf", "what the file holds, and whether this version runs it"},
			{"gpuscope graph --at 512,0 Llama-3.2-1B", "what the first prompt of a Hugging Face folder launches"},
			{"gpuscope graph model.pte", "an ExecuTorch program: its methods, and the operators inside a Vulkan delegate"},
			{"gpuscope graph --passes --fuse off", "what planning did, with no operators fused"},
			{"gpuscope graph --pass fuse", "what one pass changed, line by line"},
			{"gpuscope graph --kernel sdpa_decode > sdpa_decode.wgsl", "a kernel's text, to change it and run it by --shaders ."},
			{"gpuscope graph --format json", "for a program: the graph as a trace has it"},
		},
		setup: func(p *program, flags *pflag.FlagSet) action {
			var o modelOptions
			o.declareShape(flags,
				"plan for the adapter of that number or part of a name, or for none: `N|NAME|none` (default the best)")
			o.declareLimits(flags)
			o.declareTop(flags, 0)
			flags.Lookup("top-logits").Usage = "plan steps that tell their `K` highest logits, as those of the screen do with 5"
			format := formatFlag(flags, "text", "dot", "json")
			passes := flags.Bool("passes", false, "print what each pass of planning changed, and its time")
			pass := flags.String("pass", "",
				"print what the graph was before and after pass `NAME`, where it changed")
			at := flags.String("at", "",
				"with `M,POS` print the dispatches of a step of M tokens at position POS")
			kernel := flags.String("kernel", "",
				"print the text of kernel `NAME`, as --shaders takes it")
			inside := flags.Bool("metadata", false,
				"print what the file holds, metadata, tokens that end a text, and tensors, whether or not it can be run")
			dataFiles := flags.StringArray("data", nil,
				"take the weights of an ExecuTorch program from the .ptd `FILE` (may be repeated)")
			return func(ctx context.Context, operands []string) error {
				if err := format.check(); err != nil {
					return err
				}
				paths, err := programs(operands)
				switch {
				case err != nil:
					return err
				case len(paths) > 0 && (*pass != "" || *passes || *at != "" || *kernel != ""):
					return usagef("%s is an ExecuTorch program, which is shown and not planned: --passes, --pass, --at and "+
						"--kernel are for other models", paths[0])
				case len(paths) > 0:
					return p.printPrograms(ctx, paths, *dataFiles, format.value)
				case len(*dataFiles) > 0:
					return usagef("--data: it is for ExecuTorch programs (.pte, .bpte)")
				}
				if err := o.validate(operands); err != nil {
					return err
				}
				text := *pass != "" || *passes
				switch {
				case *inside && text, *pass != "" && *passes, *at != "" && (*inside || text):
					return usagef("--metadata, --passes, --pass and --at print different things: give one of them")
				case *kernel != "" && (text || *inside || *at != "" || format.value != format.words[0]):
					return usagef("--kernel prints a kernel and nothing else: give it alone")
				case format.value == "dot" && text, format.value == "json" && *pass != "":
					return usagef("--format %s has no passes: --pass and --passes print text, --format json has the passes of --passes",
						format.value)
				case *inside:
					return p.printContents(&o, format, nil)
				}
				if *at != "" {
					return p.printAt(ctx, &o, *at, format)
				}
				planned, err := p.planGraph(&o, *pass)
				var cannot model.Unplannable
				if errors.As(err, &cannot) && !text && format.value != "dot" {
					return p.printContents(&o, format, cannot)
				}
				if err != nil {
					return asUsage(err)
				}
				if *kernel != "" {
					return planned.printKernel(p.stdout, *kernel)
				}
				switch format.value {
				case "dot":
					return planned.printDOT(p.stdout)
				case "json":
					return writeJSON(p.stdout, planned)
				}
				if *pass != "" {
					return planned.printPass(p.stdout, *pass)
				}
				if *passes {
					return planned.printPasses(ctx, p.stdout)
				}
				return planned.printText(p.stdout)
			}
		},
	}
}

// printKernel prints the text of a kernel as a file of --shaders has it.
func (g *plannedGraph) printKernel(out io.Writer, name string) error {
	var names []string
	for i := range g.Kernels {
		k := &g.Kernels[i]
		if k.Name == name {
			_, err := io.WriteString(out, session.KernelText(k.Name, k.Constants, k.Source))
			return err
		}
		names = append(names, k.Name)
	}
	return usagef("--kernel %q: the graph has %s", printable.Short(name, 80), printable.Choice(names))
}

// plannedGraph is a model's graph that has not run.
type plannedGraph struct {
	Model trace.Model `json:"model"`
	For   string      `json:"for"` // the device, in words
	// AllocatedBytes is what the device would hold, by role; params are not counted.
	AllocatedBytes map[string]int64 `json:"allocated_bytes"`
	// Active are the dispatches that run at the largest shapes, in order; Levels the first of each run of
	// them between barriers.
	Active []trace.DispatchID `json:"active"`
	Levels []trace.DispatchID `json:"levels"`
	// Passes are what made the graph of the operators that the model's builder gave.
	Passes      []graph.PassReport `json:"passes"`
	trace.Graph `json:"graph"`
}

// planGraph plans a model's graph; the report of the pass dump, if that is not "", lists it before and after.
func (p *program) planGraph(o *modelOptions, dump string) (planned *plannedGraph, err error) {
	limits, words, err := p.limits(o)
	if err != nil {
		return nil, err
	}
	options, err := p.forModel(o)
	if err != nil {
		return nil, err
	}
	options.DumpPass = dump
	m, err := model.Read(options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p.warn(m)
	g, err := m.Plan(limits)
	if err != nil {
		return nil, err
	}
	live, err := graph.NewLive(g, graph.LiveOptions{})
	if err != nil {
		return nil, err
	}
	return &plannedGraph{
		Model: m.Info(), For: words, AllocatedBytes: g.AllocatedBytes(), Active: live.Active(),
		Levels: live.Levels(), Passes: g.Passes(), Graph: g.Describe(),
	}, nil
}

// warn prints a model's warnings to standard error.
func (p *program) warn(m *model.Model) {
	for _, w := range m.Warnings() {
		fmt.Fprintf(p.stderr, "warn: %s\n", w)
	}
}

// limits are those of the adapter that --device names, or where there is none those of --limits.
func (p *program) limits(o *modelOptions) (gpu.Limits, string, error) {
	want, without := o.device, o.limitSet()
	none := "no device, with the limits " + without.Doc
	if want == trace.NoDevice {
		return without.Limits, none, nil
	}
	adapters, err := p.driver.Adapters()
	if errors.Is(err, gpu.ErrNoAdapter) && want == "" {
		return without.Limits, none, nil
	}
	if err != nil {
		return gpu.Limits{}, "", err
	}
	i, _, err := model.ChooseDevice(adapters, want)
	if err != nil {
		return gpu.Limits{}, "", err
	}
	return adapters[i].Limits,
		fmt.Sprintf("%s (%s, %s)", adapters[i].Name, adapters[i].Backend, adapters[i].Type), nil
}

// printHead says what the graph is of, and how large it is.
func (g *plannedGraph) printHead(b *bytes.Buffer) {
	m := &g.Model
	fmt.Fprintf(b, "%s · %s · %d layers · %.1f M parameters · %s\n", printable.Clean(m.Name), m.Architecture,
		m.Layers, float64(m.Parameters)/1e6, m.Quantization)
	fmt.Fprintf(b, "planned for %s · context %d · at most %s a step\n", printable.Clean(g.For), m.Dims["context"],
		table.Plural(m.Dims["max_chunk"], "token"))
	fmt.Fprintf(b,
		"%d operators · %d values · %d dispatches, %d of them in %d levels at the largest shapes · %d kernels\n",
		len(g.Ops), len(g.Values), len(g.Dispatches), len(g.Active), len(g.Levels), len(g.Kernels))
	b.WriteString(g.memoryLine() + "\n")
}

func (g *plannedGraph) printText(w io.Writer) error {
	var b bytes.Buffer
	g.printHead(&b)
	x, ctx := analyze.NewIndex(&trace.Trace{Graph: g.Graph}), context.Background()
	for _, t := range []*table.Table{report.Operators(x), report.Slots(x, g.levels()), report.Values(x,
		analyze.Selection{})} {
		b.WriteByte('\n')
		if err := printTable(ctx, &b, t); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// levels are those of the dispatches that run at the largest shapes.
func (g *plannedGraph) levels() map[trace.DispatchID]int {
	levels, level := map[trace.DispatchID]int{}, -1
	for _, id := range g.Active {
		if level+1 < len(g.Levels) && g.Levels[level+1] == id {
			level++
		}
		levels[id] = level
	}
	return levels
}

// memoryLine is what the device would hold, in all and by role, the largest first.
func (g *plannedGraph) memoryLine() string {
	var total int64
	for _, n := range g.AllocatedBytes {
		total += n
	}
	return fmt.Sprintf("device memory %s: %s", table.Memory(total), memoryBy(g.AllocatedBytes))
}

// memoryBy says how much memory is of each kind, the largest first.
func memoryBy(bytes map[string]int64) string {
	kinds := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b))
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %s", kind, table.Memory(bytes[kind]))
	}
	return strings.Join(kinds, ", ")
}
