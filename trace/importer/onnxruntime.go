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

// onnxruntime is the profile of ONNX Runtime: a JSON list of complete events with times in whole µs. A run of
// the model is the event "model_run". The event of a node is named after it: "layers.0.mlp.up_kernel_time".
// Kernels of the WebGPU provider are events of category Api with the process id -1. If the file has such
// events, they are the rows of the profile, because the events of nodes then have host times. Otherwise the
// events of nodes are the rows.
var onnxruntime = format{
	name: "onnxruntime", doc: "the profile of ONNX Runtime",
	sniff: func(start []byte) bool {
		return bytes.Contains(start, []byte("model_loading")) ||
			bytes.Contains(start, []byte("session_initialization")) ||
			bytes.Contains(start, []byte("_kernel_time"))
	},
	read: readONNX,
}

const nodeSuffix = "_kernel_time"

// event is an event of the Chrome format.
type event struct {
	Phase string          `json:"ph"`
	Cat   string          `json:"cat"`
	Name  string          `json:"name"`
	PID   json.RawMessage `json:"pid"`
	TID   json.RawMessage `json:"tid"`
	TS    float64         `json:"ts"`  // µs
	Dur   *float64        `json:"dur"` // µs; nil if it was not measured
	Args  json.RawMessage `json:"args"`
}

// time returns the duration of a complete event.
func (e *event) time() (trace.Time, error) {
	if e.Dur == nil {
		return trace.Time{}, nil
	}
	if us := *e.Dur; !(us >= 0 && us <= maxMicros) {
		return trace.Time{}, fmt.Errorf("dur: %v, want a number of µs between 0 and %g", us, maxMicros)
	}
	return trace.Measured(int64(*e.Dur*1e3 + 0.5)), nil
}

// end returns the end of a complete event, in µs.
func (e *event) end() float64 {
	if e.Dur == nil {
		return e.TS
	}
	return e.TS + *e.Dur
}

// onnxRow is the event of a node or a kernel.
type onnxRow struct {
	ts     float64
	node   string
	kind   string
	time   trace.Time
	gpu    bool
	tokens int
}

func readONNX(in io.Reader, t *trace.Trace) error {
	t.Engine, t.Device.Backend = "ONNX Runtime", "ONNX Runtime"
	r, m := newRecorder(t), newModel(t)
	var list []onnxRow
	var runs [][2]float64
	gpu := false
	d := document{list: "traceEvents", openEnd: true, each: func(raw json.RawMessage) error {
		var e event
		if err := unmarshal(raw, &e); err != nil {
			return err
		}
		node, is := strings.CutSuffix(e.Name, nodeSuffix)
		row := onnxRow{ts: e.TS, node: node, gpu: e.Cat == "Api" && string(e.PID) == "-1"}
		if e.Cat == "Session" && e.Name == "model_run" {
			if runs = append(runs, [2]float64{e.TS, e.end()}); len(runs) > maxRows {
				return r.room(len(runs))
			}
			return nil
		}
		if !row.gpu && !(is && e.Cat == "Node") {
			return nil
		}
		var args struct {
			Op     string             `json:"op_name"`
			Inputs []map[string][]int `json:"input_type_shape"`
		}
		if len(e.Args) > 0 {
			if err := unmarshal(e.Args, &args); err != nil {
				return fmt.Errorf("args: %w", err)
			}
		}
		var err error
		if row.time, err = e.time(); err != nil {
			return err
		}
		if row.node, err = r.name(row.node); err != nil {
			return err
		}
		if row.kind, err = r.name(args.Op); err != nil {
			return err
		}
		row.tokens = onnxTokens(args.Op, args.Inputs)
		gpu = gpu || row.gpu
		list = append(list, row)
		return r.room(len(list))
	}}
	if err := d.read(in); err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(row onnxRow) bool { return row.gpu != gpu })
	slices.SortStableFunc(list, func(a, b onnxRow) int { return before(a.ts, b.ts) })
	slices.SortFunc(runs, func(a, b [2]float64) int { return before(a[0], b[0]) })
	var step stepRows
	tokens, run := 0, 0
	finish := func() error {
		if len(step.launches) == 0 {
			return nil
		}
		if len(m.ops) == 0 {
			tokens = 0 // the profile may not be of a language model
		}
		err := r.addTokens(tokens, &step)
		tokens = 0
		return err
	}
	for i := range list {
		row := &list[i]
		for run < len(runs) && row.ts > runs[run][1] {
			run++
			if err := finish(); err != nil {
				return err
			}
		}
		tokens = max(tokens, row.tokens)
		l := launch{kernel: row.kind, time: row.time}
		if err := r.putNamed(m, &step, row.node, row.kind, l); err != nil {
			return err
		}
	}
	if err := finish(); err != nil {
		return err
	}
	if len(t.Steps) == 0 {
		return fmt.Errorf("%w: it has no node events", ErrFormat)
	}
	r.finish()
	d.note(t)
	return nil
}

func before(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// onnxTokens returns the number of rows that a product multiplies with a matrix, or 0.
func onnxTokens(op string, inputs []map[string][]int) int {
	if !strings.HasPrefix(op, "MatMul") || len(inputs) == 0 {
		return 0
	}
	n := 1
	for _, dims := range inputs[0] {
		for _, d := range dims[:max(len(dims)-1, 0)] {
			if d < 1 || d > maxRows {
				return 0
			}
			if n *= d; n > maxRows {
				return 0
			}
		}
	}
	return n
}

// exported maps the names that exported models give to their modules to the roles of our operators.
var exported = []struct{ part, role string }{
	{"q_proj", "attn.q"},
	{"k_proj", "attn.k"},
	{"v_proj", "attn.v"},
	{"o_proj", "attn.o"},
	{"gate_proj", "mlp.gate"},
	{"up_proj", "mlp.up"},
	{"down_proj", "mlp.down"},
	{"input_layernorm", "attn.norm"},
	{"post_attention_layernorm", "mlp.norm"},
	{"GroupQueryAttention", "attn.sdpa"},
	{"MultiHeadAttention", "attn.sdpa"},
}

// putNamed adds the launch of a node whose name may be that of one of our operators, or contain its layer and
// the name of its module.
func (r *recorder) putNamed(m *model, s *stepRows, name, kind string, l launch) error {
	l.joined = trace.JoinedByTensor
	if i, ok := m.names[name]; ok {
		return r.put(s, i, "", l)
	}
	layer, rest, ok := layerIn(name)
	for _, e := range exported {
		if !ok || !strings.Contains(rest, e.part) {
			continue
		}
		if i, ok := m.find(layer, e.role); ok {
			return r.put(s, i, "", l)
		}
	}
	if strings.Contains(name, "lm_head") {
		if i, ok := m.find(-1, "lm_head"); ok {
			return r.put(s, i, "", l)
		}
	}
	o := trace.Op{Name: name, Kind: kind}
	if ok {
		o.Layer = &layer
		if block, _, found := strings.Cut(rest, "."); found {
			o.Block = block
		}
	}
	return r.putOwn(s, o, l)
}
