package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"gpuscope/trace"
)

// kineto is the Chrome JSON of PyTorch's profiler, or of any other program. Events of category kernel are the
// rows. The step of a kernel is the annotation in which the host launched it: "ProfilerStep#3" or, if there
// are no such annotations, any annotation of the user. The correlation id of the kernel leads to the launch.
// The id "External id" leads to the PyTorch operator. In a file without kernels, launches and steps of
// PyTorch, the complete events that contain no other event are the rows of one step.
var kineto = format{
	name: "kineto", doc: "the Chrome JSON of PyTorch's profiler or of another program",
	sniff: func(start []byte) bool {
		return bytes.Contains(start, []byte(`"traceEvents"`)) || bytes.Contains(start, []byte(`"ph"`))
	},
	read: readKineto,
}

// kinetoEvent is a complete event.
type kinetoEvent struct {
	ts, end float64
	name    string
	track   string // process and thread
	time    trace.Time
	launch  int64 // correlation id; 0 for none
	op      int64 // External id; 0 for none
	grid    [3]int
}

// kinetoOp is a PyTorch operator: its name, and the shape of its matrix if it multiplies with one.
type kinetoOp struct {
	name string
	shapeRow
	tokens int
}

type kinetoReader struct {
	*recorder
	kernels, others, steps, profiled []kinetoEvent
	launched                         map[int64]float64
	ops                              map[int64]kinetoOp
	n, outside, empty                int // numbers of complete events, kernels outside of steps, empty steps
}

func readKineto(in io.Reader, t *trace.Trace) error {
	t.Engine, t.Device.Backend = "PyTorch", "Kineto"
	r := kinetoReader{recorder: newRecorder(t), launched: map[int64]float64{}, ops: map[int64]kinetoOp{}}
	d := document{list: "traceEvents", openEnd: true, each: r.event}
	if err := d.read(in); err != nil {
		return err
	}
	if len(r.profiled) > 0 {
		r.steps = r.profiled
	}
	if len(r.kernels) == 0 && len(r.launched) == 0 && len(r.profiled) == 0 {
		t.Engine, t.Device.Backend = "Chrome trace", "Chrome trace"
		r.kernels, r.steps = leaves(r.others), nil
	}
	if err := r.split(newModel(t)); err != nil {
		return err
	}
	switch {
	case len(t.Steps) > 0:
	case r.n == 0:
		return fmt.Errorf("%w: it has no complete events", ErrFormat)
	case len(r.kernels) == 0:
		return fmt.Errorf("%w: its %d complete events are operators, calls and annotations. Profile with "+
			"the activity CUDA", ErrNoKernels, r.n)
	default:
		return fmt.Errorf("%w: none of its %d kernels was launched in one of its %d annotations. Each "+
			"kernel needs the correlation of its own launch", ErrNoKernels, len(r.kernels), len(r.steps))
	}
	r.finish()
	var left []string
	if r.empty > 0 {
		left = append(left, fmt.Sprintf("steps without kernels (%d)", r.empty))
	}
	if r.outside > 0 {
		left = append(left, fmt.Sprintf("kernels launched outside of all steps (%d)", r.outside))
	}
	if left != nil {
		t.Events = append(t.Events, trace.Event{
			Step: len(t.Steps) - 1, Kind: trace.EventLeftOut,
			Text: "not imported: " + strings.Join(left, ", "),
		})
	}
	d.note(t)
	return nil
}

// withArgs lists the categories of events whose arguments are read.
var withArgs = []string{"kernel", "cpu_op", "cuda_runtime", "cuda_driver", "gpu_memcpy", "gpu_memset"}

func (r *kinetoReader) event(raw json.RawMessage) error {
	var e event
	if err := unmarshal(raw, &e); err != nil {
		return err
	}
	if e.Phase != "X" {
		return nil
	}
	if r.n++; r.n > maxRows {
		return r.room(r.n)
	}
	time, err := e.time()
	if err != nil {
		return err
	}
	at := kinetoEvent{ts: e.TS, end: e.end(), time: time}
	if at.name, err = r.name(e.Name); err != nil {
		return err
	}
	var args struct {
		Correlation int64   `json:"correlation"`
		External    int64   `json:"External id"`
		Grid        []int   `json:"grid"`
		Dims        [][]int `json:"Input Dims"`
	}
	if slices.Contains(withArgs, e.Cat) && len(e.Args) > 0 {
		var loose map[string]json.RawMessage // "Input Dims" may hold nested lists, which are skipped
		if err := unmarshal(e.Args, &loose); err != nil {
			return fmt.Errorf("args: %w", err)
		}
		_ = json.Unmarshal(loose["Input Dims"], &args.Dims)
		for name, into := range map[string]any{
			"correlation": &args.Correlation, "External id": &args.External, "grid": &args.Grid,
		} {
			if value, ok := loose[name]; ok {
				if err := unmarshal(value, into); err != nil {
					return fmt.Errorf("args.%s: %w", name, err)
				}
			}
		}
	}
	at.launch, at.op = args.Correlation, args.External
	switch e.Cat {
	case "kernel", "gpu_memcpy", "gpu_memset":
		if len(args.Grid) == len(at.grid) {
			for i, n := range args.Grid {
				if n < 1 || n > 1<<31 {
					return fmt.Errorf("args.grid: %v, want counts between 1 and %d", args.Grid, 1<<31)
				}
				at.grid[i] = n
			}
			if at.grid[1] > maxGroups || at.grid[2] > maxGroups {
				return fmt.Errorf("args.grid: %v, want at most %d in the dims y and z", args.Grid, maxGroups)
			}
		}
		r.kernels = append(r.kernels, at)
	case "cuda_runtime", "cuda_driver":
		if at.launch != 0 {
			r.launched[at.launch] = at.ts
		}
	case "cpu_op":
		if at.op != 0 {
			r.ops[at.op] = torchOp(at.name, args.Dims)
		}
	case "user_annotation":
		if strings.HasPrefix(at.name, "ProfilerStep#") {
			r.profiled = append(r.profiled, at)
		}
		r.steps = append(r.steps, at)
	case "gpu_user_annotation", "Trace", "overhead":
	default:
		if at.track, err = r.name(string(e.PID) + " " + string(e.TID)); err != nil {
			return err
		}
		r.others = append(r.others, at)
	}
	return nil
}

// torchOp returns a PyTorch operator. The operators mm and addmm take the matrix transposed: [k, m].
func torchOp(name string, dims [][]int) kinetoOp {
	o := kinetoOp{name: name}
	x, w := -1, -1
	switch name {
	case "aten::mm", "aten::linear", "aten::matmul":
		x, w = 0, 1
	case "aten::addmm":
		x, w = 1, 2
	}
	if w < 0 || len(dims) <= w || len(dims[x]) != 2 || len(dims[w]) != 2 {
		return o
	}
	o.op, o.m, o.k, o.tokens = "MUL_MAT", dims[w][1], dims[w][0], dims[x][0]
	if name == "aten::linear" {
		o.m, o.k = o.k, o.m
	}
	return o
}

// split divides the kernels into steps. If there are steps, kernels that were launched outside of all steps
// are left out. So are steps without kernels, such as those before the profiler recorded the GPU.
func (r *kinetoReader) split(m *model) error {
	slices.SortStableFunc(r.steps, func(a, b kinetoEvent) int { return before(a.ts, b.ts) })
	outer := r.steps[:0]
	for _, s := range r.steps { // without annotations inside of others
		if len(outer) == 0 || s.ts >= outer[len(outer)-1].end {
			outer = append(outer, s)
		}
	}
	slices.SortStableFunc(r.kernels, func(a, b kinetoEvent) int { return before(a.ts, b.ts) })
	lists := make([][]*kinetoEvent, max(len(outer), 1))
	for i := range r.kernels {
		k := &r.kernels[i]
		ts, ok := r.launched[k.launch]
		if !ok {
			ts = k.ts
		}
		if len(outer) == 0 {
			lists[0] = append(lists[0], k)
			continue
		}
		at, _ := slices.BinarySearchFunc(outer, ts,
			func(s kinetoEvent, ts float64) int { return before(s.end, ts) })
		if at < len(outer) && ts >= outer[at].ts {
			lists[at] = append(lists[at], k)
		} else {
			r.outside++
		}
	}
	for _, list := range lists {
		if len(list) == 0 {
			r.empty++
		}
		if err := r.step(m, list); err != nil {
			return err
		}
	}
	return nil
}

// step adds a step with these kernels.
func (r *kinetoReader) step(m *model, list []*kinetoEvent) error {
	if len(list) == 0 {
		return nil
	}
	var step stepRows
	var matrices []shapeRow
	tokens := 0
	for _, k := range list {
		o := r.ops[k.op]
		tokens = max(tokens, o.tokens)
		if o.op != "" && len(m.ops) > 0 {
			row := o.shapeRow
			row.text, row.count, row.time = k.name, 1, k.time
			matrices = append(matrices, row)
			continue
		}
		name := o.name
		if name == "" {
			name = k.name
		}
		l := launch{kernel: k.name, grid: k.grid, time: k.time}
		if err := r.putNamed(m, &step, name, name, l); err != nil {
			return err
		}
	}
	if err := r.joinShapes(m, &step, matrices); err != nil {
		return err
	}
	if len(m.ops) == 0 {
		tokens = 0
	}
	return r.addTokens(tokens, &step)
}

// leaves returns the events that contain no other event of their track. It reuses the memory of the list.
func leaves(list []kinetoEvent) []kinetoEvent {
	slices.SortStableFunc(list, func(a, b kinetoEvent) int {
		if c := strings.Compare(a.track, b.track); c != 0 {
			return c
		}
		if c := before(a.ts, b.ts); c != 0 {
			return c
		}
		return before(b.end, a.end)
	})
	out := list[:0]
	for i, e := range list {
		if i+1 < len(list) && list[i+1].track == e.track && list[i+1].ts < e.end && list[i+1].end <= e.end {
			continue
		}
		out = append(out, e)
	}
	return out
}
