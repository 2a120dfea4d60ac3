package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model"
	"gpuscope/model/checkpoint/pte"
	runner "gpuscope/model/program"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/report/drawing"
	"gpuscope/trace/table"
)

func graphCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "graph", Operand: "[MODEL]…",
		Doc: "print a model's graph: operators, values, dispatches, memory",
		More: `The graph is planned, not run. By default, shapes and grids are the largest that the context and the chunk allow.
With --at M,POS, they are those of a step of M tokens at position POS. Without a device, or with --device none, planning
uses the limits that every WebGPU device grants. For a file that cannot be planned, the command prints the reason and the
output of --metadata. For ExecuTorch programs (.pte, .bpte), it prints the methods, the delegates, and the contents of
Vulkan delegates with the memory plans of the exporter and of gpuscope. Constants outside a program are looked up in the .ptd files
given with --data, otherwise in the program's folder. For a .ptd file, it prints the keys with their sizes and layouts.`,
		Examples: []cli.Example{
			{"gpuscope graph", "the embedded model"},
			{"gpuscope graph --device none --max-chunk 128", "plan without a device, with shorter prefill steps"},
			{"gpuscope graph --at 1,638", "the dispatches of a decode step at position 638"},
			{"gpuscope graph --format dot | dot -Tsvg > graph.svg", "a drawing, made with Graphviz"},
			{"gpuscope graph --metadata model.gguf", "the contents of the file, and whether this version supports the model"},
			{"gpuscope graph --at 512,0 Llama-3.2-1B", "the dispatches of a 512-token prefill step, for a model in a Hugging Face folder"},
			{"gpuscope graph model.pte", "the methods of an ExecuTorch program, and the operators inside its Vulkan delegates"},
			{"gpuscope graph --passes --fuse off", "what each planning pass changes when fusion is off"},
			{"gpuscope graph --pass fuse", "the lines of the graph that the fuse pass changed"},
			{"gpuscope graph --kernel sdpa_decode > sdpa_decode.wgsl", "save the source of a kernel; after editing, run it with the option \"--shaders .\""},
			{"gpuscope graph --format json", "the graph in the trace format, for a program"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			var o modelOptions
			o.declareShape(flags,
				"plan for the adapter with number N or with NAME in its name, or without a device: `N|NAME|none` (default the best adapter)")
			o.declareLimits(flags)
			o.declareTop(flags, 0)
			flags.Lookup("top-logits").Usage = "plan steps that report their `K` highest logits (the full-screen program plans with K = 5)"
			format := cli.FormatFlag(flags, "text", "dot", "json")
			passes := flags.Bool("passes", false, "print what each planning pass changed, and how long the pass took")
			pass := flags.String("pass", "",
				"print the lines that planning pass `NAME` changed in the graph, as they were before and after the pass")
			at := flags.String("at", "",
				"print the dispatches of a step `M,POS` of M tokens at position POS")
			kernel := flags.String("kernel", "",
				"print the source of kernel `NAME`, which --shaders can load")
			inside := flags.Bool("metadata", false,
				"print the file's metadata, end tokens and tensors, even if the model is not supported")
			return func(ctx context.Context, operands []string) error {
				if err := format.Check(); err != nil {
					return err
				}
				files, err := executorchFiles(operands)
				switch {
				case err != nil:
					return err
				case len(files.programs)+len(files.data) == 0:
				case *pass == "" && !*passes && *at == "" && *kernel == "":
					return files.print(ctx, p, &o, format.Value)
				case len(files.data) > 0:
					return cli.Usagef("--passes, --pass, --at and --kernel plan a program, but %s is a data file",
						files.data[0])
				case len(files.programs) > 1:
					return cli.Usagef(
						"--passes, --pass, --at and --kernel plan one program, but %d are given",
						len(files.programs))
				}
				if err := o.validate(operands); err != nil {
					return err
				}
				text := *pass != "" || *passes
				switch {
				case *inside && text, *pass != "" && *passes, *at != "" && (*inside || text):
					return cli.Usagef("--metadata, --passes, --pass and --at cannot be combined: give only one of them")
				case *kernel != "" && (text || *inside || *at != "" || format.Value != format.Words[0]):
					return cli.Usagef("--kernel prints only the kernel: remove --metadata, --passes, --pass and --at")
				case format.Value == "dot" && text, format.Value == "json" && *pass != "":
					return cli.Usagef("--format %s cannot show passes: use --format text, or --passes with --format json",
						format.Value)
				case *inside:
					return p.printContents(&o, format, nil)
				}
				if *at != "" {
					return p.printAt(ctx, &o, *at, format)
				}
				planned, err := p.planGraph(&o, *pass)
				var cannot model.Unplannable
				if errors.As(err, &cannot) && !text && format.Value != "dot" {
					return p.printContents(&o, format, cannot)
				}
				if err != nil {
					return asUsage(err)
				}
				if *kernel != "" {
					return planned.printKernel(p.Stdout, *kernel)
				}
				switch format.Value {
				case "dot":
					return drawing.DOT(p.Stdout, &planned.Graph)
				case "json":
					return cli.WriteJSON(p.Stdout, planned)
				}
				if *pass != "" {
					return planned.printPass(p.Stdout, *pass)
				}
				if *passes {
					return planned.printPasses(ctx, p.Stdout)
				}
				return planned.printText(p.Stdout)
			}
		},
	}
}

// printKernel prints the source of a kernel in the format that --shaders reads.
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
	return cli.Usagef("--kernel %q: the graph has no such kernel; want %s",
		printable.Short(name, 80), printable.Choice(names))
}

// plannedGraph is the graph of a model that was planned but not run.
type plannedGraph struct {
	Model trace.Model `json:"model"`
	For   string      `json:"for"` // description of the device
	// AllocatedBytes is the device memory by role, without kernel parameters.
	AllocatedBytes map[string]int64 `json:"allocated_bytes"`
	// Active lists the dispatches that run at the largest shapes, in the order in which they run. Levels
	// lists the first dispatch of each level, that is, the first one after each barrier.
	Active []trace.DispatchID `json:"active"`
	Levels []trace.DispatchID `json:"levels"`
	// Passes lists the planning passes and what each of them changed in the graph.
	Passes      []graph.PassReport `json:"passes"`
	trace.Graph `json:"graph"`
}

// planGraph plans a model's graph. If `dump` is the name of a pass, the report of this pass in
// plannedGraph.Passes lists the graph before and after the pass.
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
	if errors.Is(err, runner.ErrNotLanguage) {
		return planProgram(&options, limits, words)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p.warn(m)
	g, err := m.Plan(limits)
	if err != nil {
		return nil, err
	}
	return plannedOf(g, m.Info(), words)
}

// planProgram plans a method of a program that is not a language model.
func planProgram(o *model.Options, limits gpu.Limits, words string) (planned *plannedGraph, err error) {
	f, err := pte.Open(o.Path, o.Data...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, err := runner.Build(f, cmp.Or(o.Method, "forward"), limits, runner.Options{
		Fuse: o.Fuse, Routes: o.Routes, DumpPass: o.DumpPass,
	})
	if err != nil {
		return nil, err
	}
	name := filepath.Base(o.Path)
	info := trace.Model{Name: name, Architecture: "ExecuTorch program", Source: name}
	return plannedOf(m.Graph, info, words)
}

// plannedOf describes a graph at its largest shapes.
func plannedOf(g *graph.Graph, info trace.Model, words string) (*plannedGraph, error) {
	live, err := graph.NewLive(g, graph.LiveOptions{})
	if err != nil {
		return nil, err
	}
	return &plannedGraph{
		Model: info, For: words, AllocatedBytes: g.AllocatedBytes(), Active: live.Active(),
		Levels: live.Levels(), Passes: g.Passes(), Graph: g.Describe(),
	}, nil
}

func (p *program) warn(m *model.Model) {
	for _, w := range m.Warnings() {
		fmt.Fprintf(p.Stderr, "warn: %s\n", w)
	}
}

// limits returns the limits of the adapter that --device names. If there is no adapter, it returns the limits
// that --limits names.
func (p *program) limits(o *modelOptions) (gpu.Limits, string, error) {
	want, without := o.device, o.limitSet()
	none := "no device, limits " + without.Doc
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
	i, _, err := stepping.ChooseDevice(adapters, want)
	if err != nil {
		return gpu.Limits{}, "", err
	}
	return adapters[i].Limits,
		fmt.Sprintf("%s (%s, %s)", adapters[i].Name, adapters[i].Backend, adapters[i].Type), nil
}

// printHead prints a summary of the graph and its size.
func (g *plannedGraph) printHead(b *bytes.Buffer) {
	m := &g.Model
	fmt.Fprintf(b, "%s · %s · %d layers · %.1f M parameters · %s\n", printable.Clean(m.Name), m.Architecture,
		m.Layers, float64(m.Parameters)/1e6, m.Quantization)
	fmt.Fprintf(b, "planned for %s · context of %d tokens · at most %s per step\n", printable.Clean(g.For), m.Dims["context"],
		table.Plural(m.Dims["max_chunk"], "token"))
	fmt.Fprintf(b,
		"%d operators · %d values · %d dispatches (at the largest shapes, %d of them run, in %d levels)"+
			" · %d kernels\n", len(g.Ops), len(g.Values), len(g.Dispatches), len(g.Active),
		len(g.Levels), len(g.Kernels))
	b.WriteString(g.memoryLine() + "\n")
}

func (g *plannedGraph) printText(w io.Writer) error {
	var b bytes.Buffer
	g.printHead(&b)
	x, ctx := analyze.NewIndex(&trace.Trace{Graph: g.Graph}), context.Background()
	for _, t := range []*table.Table{report.Operators(x), report.Slots(x, g.levels()), report.Values(x,
		analyze.Selection{})} {
		b.WriteByte('\n')
		if err := cli.PrintTable(ctx, &b, t); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// levels returns the level of each dispatch that runs at the largest shapes.
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

// memoryLine formats the total device memory and the memory by role.
func (g *plannedGraph) memoryLine() string {
	var total int64
	for _, n := range g.AllocatedBytes {
		total += n
	}
	return fmt.Sprintf("device memory %s: %s", table.Memory(total), memoryBy(g.AllocatedBytes))
}

// memoryBy formats sizes in bytes that are grouped by role or by data type, the largest size first.
func memoryBy(bytes map[string]int64) string {
	kinds := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b))
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %s", kind, table.Memory(bytes[kind]))
	}
	return strings.Join(kinds, ", ")
}
