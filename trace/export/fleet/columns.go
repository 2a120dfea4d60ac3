package fleet

import (
	"math"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// kind is the type of a column.
type kind int

const (
	text    kind = iota // UTF-8
	integer             // 64 bits, signed
	float               // 64 bits
	truth               // true or false
	instant             // microseconds since 1970-01-01T00:00:00Z
)

// value is a value of a column. `known` is false for NULL. The kind of the column decides which of the other
// fields is set. For the kind truth, this is `n`, which is 1 or 0.
type value struct {
	known bool
	n     int64
	f     float64
	s     string
}

// column is a column of a table. Its values can be NULL only if `null` is set.
type column struct {
	name string
	kind kind
	null bool
	doc  string
	of   func(*row) value
}

func str[S ~string](s S) value {
	return value{known: true, s: strings.ToValidUTF8(string(s), "\uFFFD")}
}

// given converts a text to a value. An empty text becomes NULL.
func given[S ~string](s S) value {
	v := str(s)
	v.known = s != ""
	return v
}

func num[N ~int | ~int32 | ~int64](n N) value { return value{known: true, n: int64(n)} }

func flag(is bool) value {
	if is {
		return num(1)
	}
	return num(0)
}

// ns returns a time in ns, or NULL if it was not measured.
func ns(t trace.Time) value {
	n, ok := t.NS()
	return value{known: ok, n: n}
}

// positive returns a number, or NULL if it is 0, which means that it is not known.
func positive(f float64) value { return value{known: f != 0 && !math.IsNaN(f), f: f} }

// ofRun are the first columns of both tables: they describe the run.
var ofRun = []column{
	{
		"run", text, false, "id of the run: the same for each export of a trace",
		func(r *row) value { return str(r.id) },
	},
	{"created", instant, true, "when the recording began", func(r *row) value {
		return value{known: !r.created.IsZero(), n: r.created.UnixMicro()}
	}},
	{
		"version", text, false, "version of gpuscope",
		func(r *row) value { return str(r.trace.Producer.Version) },
	},
	{
		"commit", text, true, "commit of gpuscope",
		func(r *row) value { return given(r.trace.Producer.Commit) },
	},
	{
		"engine", text, true, "engine whose profile was imported; NULL for a run of gpuscope",
		func(r *row) value { return given(r.trace.Engine) },
	},
	{
		"static", truth, false, "whether each step launched the grids of the maximum shape (`--static`)",
		func(r *row) value { return flag(r.trace.Static) },
	},
	{"os", text, false, "operating system", func(r *row) value { return str(r.trace.Host.OS) }},
	{"arch", text, false, "processor architecture", func(r *row) value { return str(r.trace.Host.Arch) }},
	{
		"cpus", integer, false, "number of processors",
		func(r *row) value { return num(r.trace.Host.CPUs) },
	},
	{"device", text, false, "name of the GPU", func(r *row) value { return str(r.trace.Device.Name) }},
	{
		"driver", text, true, "version of the GPU's driver",
		func(r *row) value { return given(r.trace.Device.Driver) },
	},
	{
		"backend", text, false, "API below WebGPU, such as vulkan",
		func(r *row) value { return str(r.trace.Device.Backend) },
	},
	{
		"adapter_type", text, false, "kind of the device, such as discrete, or cpu for software",
		func(r *row) value { return str(r.trace.Device.AdapterType) },
	},
	{"model", text, false, "name of the model", func(r *row) value { return str(r.trace.Model.Name) }},
	{"architecture", text, true, "architecture of the model", func(r *row) value {
		return given(r.trace.Model.Architecture)
	}},
	{"quantization", text, true, "weight format of the model", func(r *row) value {
		return given(r.trace.Model.Quantization)
	}},
}

// ofStep are the next columns of both tables: they describe the step.
var ofStep = []column{
	{
		"step", integer, false, "index of the step in the run",
		func(r *row) value { return num(r.step.Index) },
	},
	{"phase", text, false, "prefill, decode or execute", func(r *row) value { return str(r.step.Phase) }},
	{
		"position", integer, false, "position of the first token",
		func(r *row) value { return num(r.step.Position) },
	},
	{
		"tokens", integer, false, "number of tokens that the step read",
		func(r *row) value { return num(len(r.step.Tokens)) },
	},
	{
		"timing", text, false, "what was timed: off, step (the whole step), block, dispatch",
		func(r *row) value { return str(r.step.Timing) },
	},
	{
		"cold", truth, false, "whether the step was not typical, because it compiled pipelines or the GPU clock was low",
		func(r *row) value { return flag(r.step.Cold) },
	},
	{
		"pipelined", truth, false, "whether the step was submitted before the previous result was read",
		func(r *row) value { return flag(r.step.Pipelined) },
	},
}

// dispatchColumns are the columns of the table dispatches.
var dispatchColumns = joined(ofRun, ofStep, []column{
	{
		"dispatch", integer, false, "id of the dispatch in the graph",
		func(r *row) value { return num(r.dispatch.ID) },
	},
	{
		"place", integer, false, "place in the order of submission, from 0",
		func(r *row) value { return num(r.place) },
	},
	{
		"name", text, false, "name of the dispatch",
		func(r *row) value { return str(r.dispatch.Named(r.op.Name)) },
	},
	{
		"operator", text, false, "name of the operator without its layer, such as attn.q",
		func(r *row) value {
			return str(r.op.Place())
		},
	},
	{
		"kind", text, false, "what the operator computes, such as linear_q4gsw",
		func(r *row) value { return str(r.op.Kind) },
	},
	{
		"class", text, false, "class of work, the same for all engines, such as norms or attention",
		func(r *row) value { return str(r.classes[r.op.ID]) },
	},
	{"weight_format", text, true, "format of the weights that the operator reads", func(r *row) value {
		return given(r.formats[r.op.ID])
	}},
	{"layer", integer, true, "number of the layer; NULL outside the layers", func(r *row) value {
		if r.op.Layer == nil {
			return value{}
		}
		return num(*r.op.Layer)
	}},
	{
		"block", text, true, "part of the layer, such as attn or mlp",
		func(r *row) value { return given(r.op.Block) },
	},
	{"kernel", text, false, "name of the kernel", func(r *row) value { return str(r.plan.Kernel) }},
	{
		"route", text, true, "route by which the kernel was chosen",
		func(r *row) value { return given(r.plan.Route) },
	},
	{
		"grid_x", integer, false, "launched workgroups in x",
		func(r *row) value { return num(r.plan.Workgroups[0]) },
	},
	{
		"grid_y", integer, false, "launched workgroups in y",
		func(r *row) value { return num(r.plan.Workgroups[1]) },
	},
	{
		"grid_z", integer, false, "launched workgroups in z",
		func(r *row) value { return num(r.plan.Workgroups[2]) },
	},
	{"workgroup_size", integer, true, "invocations of a workgroup", func(r *row) value {
		if r.kernel == nil {
			return value{}
		}
		return num(analyze.Product(r.kernel.WorkgroupSize))
	}},
	{"workgroups", integer, false, "launched workgroups", func(r *row) value {
		return num(analyze.Product(r.plan.Workgroups))
	}},
	{
		"needed_workgroups", integer, false, "workgroups with work for the shapes of the step",
		func(r *row) value {
			return num(r.plan.NeededGroups)
		},
	},
	{"max_workgroups", integer, false, "launched workgroups at the maximum shapes", func(r *row) value {
		return num(analyze.Product(r.dispatch.MaxWorkgroups))
	}},
	{"bytes", integer, false, "bytes moved to and from device memory (modelled)", func(r *row) value {
		return num(r.plan.Bytes)
	}},
	{
		"flops", integer, false, "floating-point operations (modelled)",
		func(r *row) value { return num(r.plan.FLOPs) },
	},
	{
		"start_ns", integer, true, "start on the time axis of the host, ns",
		func(r *row) value { return ns(r.ran.StartNS) },
	},
	{
		"dur_ns", integer, true, "GPU time of the recorded run, ns",
		func(r *row) value { return ns(r.ran.GPUNS) },
	},
	{"repeats", integer, false, "number of repeats in place that were timed", func(r *row) value {
		return num(len(r.ran.Samples))
	}},
	{"repeats_median_ns", integer, true, "median GPU time of the repeats, ns", func(r *row) value {
		if len(r.ran.Samples) == 0 {
			return value{}
		}
		return ns(analyze.TimeOf(r.ran).Time())
	}},
	{
		"cost_ns", integer, true, "time that the untimed step saves if it skips this dispatch, ns",
		func(r *row) value {
			if r.cost == nil {
				return value{}
			}
			return num(r.cost.NS)
		},
	},
	{"cost_error_ns", integer, true, "error (±) of `cost_ns`", func(r *row) value {
		if r.cost == nil {
			return value{}
		}
		return ns(r.cost.OffNS)
	}},
	{
		"cost_rounds", integer, true, "number of rounds in which `cost_ns` was measured",
		func(r *row) value {
			if r.cost == nil {
				return value{}
			}
			return num(r.cost.N)
		},
	},
})

// stepColumns are the columns of the table steps.
var stepColumns = joined(ofRun, ofStep, []column{
	{
		"dispatches", integer, false, "number of dispatches",
		func(r *row) value { return num(len(r.step.Dispatches)) },
	},
	{
		"start_ns", integer, true, "start on the time axis of the host, ns",
		func(r *row) value { return ns(r.step.CPU.StartNS) },
	},
	{
		"total_ns", integer, true, "wall time of the recorded run, ns",
		func(r *row) value { return ns(r.step.CPU.TotalNS) },
	},
	{"gpu_start_ns", integer, true, "start of the first dispatch, ns", func(r *row) value {
		return ns(analyze.GPUOf(r.step).StartNS)
	}},
	{
		"gpu_busy_ns", integer, true, "sum of the GPU times of the dispatches or blocks, ns",
		func(r *row) value {
			return ns(analyze.GPUOf(r.step).BusyNS)
		},
	},
	{
		"gpu_span_ns", integer, true, "from the start of the first dispatch to the end of the last, ns",
		func(r *row) value {
			return ns(analyze.GPUOf(r.step).SpanNS)
		},
	},
	{
		"untimed_ns", integer, true, "wall time without timestamps around dispatches, ns: of this run, or the median of repeats",
		func(r *row) value { return ns(r.untimed.Wall) },
	},
	{
		"untimed_gpu_ns", integer, true, "GPU time of the runs that `untimed_ns` is from, ns",
		func(r *row) value { return ns(r.untimed.GPU) },
	},
	{
		"untimed_runs", integer, false, "number of runs that `untimed_ns` is from",
		func(r *row) value { return num(r.untimed.N) },
	},
	{
		"resize_ns", integer, true, "CPU: shape propagation, ns",
		func(r *row) value { return ns(r.step.CPU.ResizeNS) },
	},
	{
		"upload_ns", integer, true, "CPU: writes to buffers, ns",
		func(r *row) value { return ns(r.step.CPU.UploadNS) },
	},
	{
		"encode_ns", integer, true, "CPU: encoding of commands, ns",
		func(r *row) value { return ns(r.step.CPU.EncodeNS) },
	},
	{
		"submit_ns", integer, true, "CPU: submission, ns",
		func(r *row) value { return ns(r.step.CPU.SubmitNS) },
	},
	{
		"wait_ns", integer, true, "CPU: wait for the GPU, ns",
		func(r *row) value { return ns(r.step.CPU.WaitNS) },
	},
	{
		"sample_ns", integer, true, "CPU: choice of the next token, ns",
		func(r *row) value { return ns(r.step.CPU.SampleNS) },
	},
	{
		"overlapped_ns", integer, true, "part of the CPU phases before the wait in which the GPU worked, ns",
		func(r *row) value { return ns(r.step.CPU.OverlappedNS) },
	},
	{
		"compile_ns", integer, true, "compilation of pipelines, ns",
		func(r *row) value { return ns(analyze.CompileTime(r.step)) },
	},
	{
		"gc_ns", integer, true, "garbage collections that paused the program, ns",
		func(r *row) value { return ns(r.step.CPU.GCNS) },
	},
	{"passes", integer, false, "compute passes", func(r *row) value { return num(r.step.CPU.Passes) }},
	{"submits", integer, false, "submits", func(r *row) value { return num(r.step.CPU.Submits) }},
	{
		"write_bytes", integer, false, "bytes written to buffers",
		func(r *row) value { return num(r.step.CPU.WriteBytes) },
	},
	{
		"clock_probe", float, true, "speed of the clock probe, relative to the warm device",
		func(r *row) value { return positive(r.step.Canary) },
	},
	{
		"allocated_bytes", integer, false, "allocated device memory",
		func(r *row) value { return num(r.step.Memory.AllocatedBytes) },
	},
	{
		"live_bytes", integer, false, "part of `allocated_bytes` that the shapes of the step need",
		func(r *row) value { return num(r.step.Memory.LiveBytes) },
	},
})

func joined(lists ...[]column) []column {
	var all []column
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
