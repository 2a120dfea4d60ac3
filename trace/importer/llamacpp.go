package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"gpuscope/trace"
)

// llamacpp is the JSON that llama.cpp's profiler writes with --profile-output: an object with the version 2,
// a list of backends, and a list of records in the order in which they ran. Records of older files have only
// the operation and the shapes of its inputs. Newer files add the name of the tensor that the operation
// computes. The layout is that of ggml-org/llama.cpp#21160.
var llamacpp = format{
	name: "llamacpp", doc: "the JSON of llama.cpp's --profile-output",
	sniff: func(start []byte) bool {
		return bytes.Contains(start, []byte(`"records"`)) &&
			(bytes.Contains(start, []byte(`"split_id"`)) || bytes.Contains(start, []byte(`"backends"`)))
	},
	read: readLlamaCpp,
}

const newestLlamaCpp = 2 // newest known version of the JSON

// llamaRecord is a record: an operation or, with type 1, a copy between backends.
type llamaRecord struct {
	Type     int     `json:"type"`
	Name     string  `json:"name"` // operation of ggml
	Split    int     `json:"split_id"`
	Duration int64   `json:"duration_ns"`
	Extra    *string `json:"extra"` // name of the fused operation
	Src0     []int64 `json:"ne_src0"`
	Src1     []int64 `json:"ne_src1"`
	Tensor   string  `json:"tensor_name"`
}

// op returns the operation, or the fused operation if several operations were fused.
func (r *llamaRecord) op() string {
	if r.Extra != nil && *r.Extra != "" {
		return *r.Extra
	}
	return r.Name
}

func (r *llamaRecord) check() error {
	if r.Duration < 0 || float64(r.Duration) > maxMicros*1e3 {
		return fmt.Errorf("duration_ns: %d, want a number between 0 and %g", r.Duration, maxMicros*1e3)
	}
	for _, ne := range [][]int64{r.Src0, r.Src1} {
		if len(ne) > 4 {
			return fmt.Errorf("a shape has %d dims, but the maximum is 4", len(ne))
		}
		for _, n := range ne {
			if n < 0 || n > maxDim {
				return fmt.Errorf("a shape has the dim %d, want 0 to %d", n, maxDim)
			}
		}
	}
	return nil
}

// dim returns a dim of a shape, or 0.
func dim(ne []int64, i int) int {
	if i >= len(ne) {
		return 0
	}
	return int(ne[i])
}

type llamaReader struct {
	*recorder
	m     *model
	step  stepRows
	norms unnamedNorms
	bare  []shapeRow // records of the step without the name of a tensor

	tokens, split, layer int
	first                string // first record of the step without a name
	ended                bool   // the step has computed the logits
}

func readLlamaCpp(in io.Reader, t *trace.Trace) error {
	t.Engine, t.Device.Backend = "llama.cpp", "llama.cpp"
	r := llamaReader{recorder: newRecorder(t), m: newModel(t)}
	r.begin()
	d := document{list: "records", each: r.record, other: func(name string, raw json.RawMessage) error {
		if name != "version" {
			return nil
		}
		var version int
		if err := unmarshal(raw, &version); err != nil {
			return fmt.Errorf("version: %w", err)
		}
		if version < 1 || version > newestLlamaCpp {
			return fmt.Errorf("%w: the profile has version %d; known: 1 to %d", ErrFormat, version,
				newestLlamaCpp)
		}
		return nil
	}}
	if err := d.read(in); err != nil {
		return err
	}
	if err := r.finishStep(); err != nil {
		return err
	}
	if len(t.Steps) == 0 {
		return fmt.Errorf("%w: the list of records is empty", ErrFormat)
	}
	r.finish()
	return nil
}

func (r *llamaReader) begin() {
	r.step, r.norms, r.bare = stepRows{}, unnamedNorms{}, r.bare[:0]
	r.tokens, r.split, r.layer, r.first, r.ended = 0, 0, -1, "", false
}

func (r *llamaReader) record(raw json.RawMessage) error {
	var rec llamaRecord
	if err := unmarshal(raw, &rec); err != nil {
		return err
	}
	if err := rec.check(); err != nil {
		return err
	}
	if r.begins(&rec) {
		if err := r.finishStep(); err != nil {
			return err
		}
		r.begins(&rec)
	}
	if err := r.room(len(r.step.launches) + len(r.bare) + 1); err != nil {
		return err
	}
	r.split = rec.Split
	op, err := r.name(rec.op())
	switch {
	case err != nil:
		return err
	case op == "":
		return fmt.Errorf("name: want the name of an operation")
	}
	time := trace.Measured(rec.Duration)
	row := shapeRow{op: op, text: op, count: 1, time: time}
	switch {
	case rec.Type == 1:
		row.op = "copy"
		if row.text, err = r.name("copy " + op); err != nil {
			return err
		}
	case row.matrix():
		row.m, row.k = dim(rec.Src0, 1), dim(rec.Src0, 0)
		r.tokens = max(r.tokens, dim(rec.Src1, 1))
		row.text = fmt.Sprintf("%s m=%d n=%d k=%d", op, row.m, dim(rec.Src1, 1), row.k)
	default:
		row.width = dim(rec.Src0, 0)
	}
	if rec.Tensor == "" || rec.Type == 1 {
		r.bare = append(r.bare, row)
		return nil
	}
	kernel, err := r.name(row.text)
	if err != nil {
		return err
	}
	return r.putTensor(r.m, &r.step, r.norms, op, rec.Tensor, launch{kernel: kernel, time: time})
}

// begins reports whether a record is the first of a new step. It is if it computes the embedding, if its
// split is lower than before, if its layer is lower by two or more than the highest layer so far, or if it
// belongs to a layer although the step has already computed the logits. A GET_ROWS record without a tensor
// name is also the first if the current step began with the same operation and shape.
func (r *llamaReader) begins(rec *llamaRecord) bool {
	if len(r.step.launches)+len(r.bare) == 0 {
		r.first = fmt.Sprint(rec.Name, rec.Src0)
		r.note(rec)
		return false
	}
	tensor, layer := tensorOf(rec.Tensor)
	begins := rec.Split < r.split || tensor == "inp_embd" || tensor == "embd" ||
		layer >= 0 && (layer < r.layer-1 || r.ended)
	if rec.Tensor == "" {
		begins = begins || rec.Name == "GET_ROWS" && fmt.Sprint(rec.Name, rec.Src0) == r.first
	}
	if !begins {
		r.note(rec)
	}
	return begins
}

// note remembers where in a step a record is.
func (r *llamaReader) note(rec *llamaRecord) {
	tensor, layer := tensorOf(rec.Tensor)
	r.layer = max(r.layer, layer)
	r.ended = r.ended || tensor == "result_output"
}

func (r *llamaReader) finishStep() error {
	if len(r.bare) > 0 {
		if err := r.joinShapes(r.m, &r.step, r.bare); err != nil {
			return err
		}
	}
	if len(r.step.launches) == 0 {
		return nil
	}
	err := r.addTokens(max(r.tokens, 1), &r.step)
	r.begin()
	return err
}
