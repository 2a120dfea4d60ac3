// Package settings lists the settings in which the two runs of a comparison differ: fusion, static grids, the
// type of the KV cache, the format of the weights, forced routes, edited kernels, and so on. It says what a
// difference in time may come from.
//
//	for _, c := range settings.Changes(d) {
//		fmt.Println(c.Kind, c.Base, c.Now) // fusion off on
//	}
//
// Most settings follow from the graphs and the plans of both traces. Others follow from the recorded command
// lines, so traces without a command line, as in tests, lack them.
package settings

import (
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/join"
)

// Kind is a setting.
type Kind string

// The settings, in the order in which Changes lists them.
const (
	Engine      Kind = "engine"
	Model       Kind = "model"
	Device      Kind = "device"
	Weights     Kind = "weights" // the quantization of the model
	Fusion      Kind = "fusion"
	Static      Kind = "static grids"
	Cache       Kind = "KV cache"
	Routes      Kind = "routes"  // routes that the user forced
	Kernels     Kind = "kernels" // kernels with another source
	Context     Kind = "context"
	MaxChunk    Kind = "max-chunk"
	Propagation Kind = "propagation"
	// Build is the version of the program. It is listed only if no other setting differs.
	Build Kind = "build"
)

// On and Off are the values of Static, and the usual values of Fusion.
const (
	On  = "on"
	Off = "off"
)

// Change is a setting that differs. Base and Now are its values at the baseline and in the other run. For
// Kernels, Now lists the kernels, and Base is "". Fusion is Off if no operator is fused. For Model, both are
// equal if two models of one name differ in their sizes, which ModelSizes lists.
type Change struct {
	Kind      Kind
	Base, Now string
}

// Changes returns the settings that differ between the two runs of a comparison. A model, device or format of
// weights that one of the traces does not name, as in a profile of another engine, is not listed.
func Changes(d *diff.Diff) (list []Change) {
	base, now := d.Base.Index.Trace, d.Now.Index.Trace
	add := func(kind Kind, a, b string) {
		if a != b {
			list = append(list, Change{kind, a, b})
		}
	}
	known := func(kind Kind, a, b string) {
		if a != "" && b != "" {
			add(kind, a, b)
		}
	}
	if base != now {
		if add(Engine, engine(base), engine(now)); base.Engine == now.Engine {
			known(Device, base.Device.Name, now.Device.Name)
		}
		if a, b := &base.Model, &now.Model; a.Name == b.Name && ModelSizes(a, b) != nil {
			list = append(list, Change{Model, a.Name, b.Name})
		} else {
			known(Model, a.Name, b.Name)
		}
		known(Weights, base.Model.Quantization, now.Model.Quantization)
	}
	if base != now && base.Engine == now.Engine && base.Model.Parameters == now.Model.Parameters {
		list = append(list, fusion(base, now)...)
		add(Static, onOff(d.Base.Index.Static()), onOff(d.Now.Index.Static()))
		add(Cache, cache(&base.Graph), cache(&now.Graph))
		add(Routes, flag(base, "route"), flag(now, "route"))
		for _, dim := range []Kind{Context, MaxChunk} {
			name := strings.ReplaceAll(string(dim), "-", "_")
			add(dim, strconv.Itoa(base.Model.Dims[name]), strconv.Itoa(now.Model.Dims[name]))
		}
		add(Propagation, flag(base, "propagation"), flag(now, "propagation"))
	}
	if names := edited(d); names != "" {
		list = append(list, Change{Kind: Kernels, Now: names})
	}
	if len(list) == 0 {
		add(Build, build(&base.Producer), build(&now.Producer))
	}
	return list
}

func engine(t *trace.Trace) string {
	if t.Engine == "" {
		return t.Producer.Name
	}
	return t.Engine
}

func build(p *trace.Producer) string {
	if p.Commit != "" {
		return p.Commit[:min(len(p.Commit), 8)]
	}
	return p.Version
}

func onOff(on bool) string {
	if on {
		return On
	}
	return Off
}

// fusion compares which operators the two graphs fuse.
func fusion(base, now *trace.Trace) []Change {
	a, b := fused(&base.Graph), fused(&now.Graph)
	if slices.Equal(a, b) {
		return nil
	}
	rules := func(t *trace.Trace, ops []string) string {
		switch text := flag(t, "fuse"); {
		case len(ops) == 0:
			return Off
		case text == "":
			return On
		default:
			return text
		}
	}
	return []Change{{Fusion, rules(base, a), rules(now, b)}}
}

// fused returns the names of the operators into which a graph fused several operators.
func fused(g *trace.Graph) (names []string) {
	for i := range g.Ops {
		if len(g.Ops[i].Parts) > 0 {
			names = append(names, g.Ops[i].Name)
		}
	}
	return names
}

// cache returns the type of the elements of the KV cache, or "" if the graph has none.
func cache(g *trace.Graph) string {
	for i := range g.Values {
		if v := &g.Values[i]; v.Role == trace.RoleState && !v.Recurrent {
			return v.DType
		}
	}
	return ""
}

// flag returns the values of a flag in the recorded command line, separated by spaces.
func flag(t *trace.Trace, name string) string {
	var values []string
	for i, word := range t.Command {
		if value, ok := strings.CutPrefix(word, "--"+name+"="); ok {
			values = append(values, value)
		} else if word == "--"+name && i+1 < len(t.Command) {
			values = append(values, t.Command[i+1])
		}
	}
	return strings.Join(values, " ")
}

// edited returns the names, separated by ", ", of the kernels that ran on both sides from different sources.
func edited(d *diff.Diff) string {
	sources := func(x *analyze.Index) map[string]string {
		of := map[string]string{}
		for i := range x.Trace.Graph.Kernels {
			k := &x.Trace.Graph.Kernels[i]
			of[k.Name] = k.SourceSHA256
		}
		return of
	}
	before, after := sources(d.Base.Index), sources(d.Now.Index)
	var names []string
	for i := range d.Rows {
		r := &d.Rows[i]
		if len(r.Now) != 1 || len(r.Base) != 1 {
			continue
		}
		from, to := r.Base[0].Plan.Kernel, r.Now[0].Plan.Kernel
		name := trace.OwnKernel(to)
		if trace.OwnKernel(from) != name || slices.Contains(names, name) {
			continue
		}
		// Sources are compared only if both runs have the same graph. Kernels of different graphs may have
		// the same name, although they are not the same kernel.
		if from != to || d.Joined == join.ByID && before[from] != after[to] {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
