package importer

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze/workclass"
)

// shapeRow is a row of a profile that names an operation and its shape, but no operator: `count` launches
// that take `time` each.
type shapeRow struct {
	op    string // operation: MUL_MAT_VEC, RMS_NORM_MUL
	text  string // the operation as the profile has it, with type and shape
	shape        // of a matrix; 0 for other operations
	width int    // width of the rows of a norm; 0 for other operations
	count int
	time  trace.Time
}

// matrix reports whether the operation multiplies all rows of its input with the same matrix. MUL_MAT_ID does
// not: it chooses the matrix of an expert for each row.
func (r *shapeRow) matrix() bool {
	return strings.HasPrefix(r.op, "MUL_MAT") && !strings.HasPrefix(r.op, "MUL_MAT_ID")
}

// adds reports whether an addition was fused into the operation.
func (r *shapeRow) adds() bool { return strings.Contains(r.op, "_ADD") }

// counterparts lists the kinds of our operators that do the work of an operation of ggml. An entry is for all
// operations that begin with `op`. The first entry that fits counts.
var counterparts = []struct {
	op    string
	kinds []string
}{
	{"FLASH_ATTN_EXT", []string{"sdpa_with_kv_cache"}},
	{"SET_ROWS", []string{"sdpa_with_kv_cache"}}, // writes values into the cache
	{"ROPE", []string{"apply_rotary_emb", "apply_rotary_emb_hf"}},
	{"GLU", []string{"silu_mul", "gelu_mul", "clamped_swiglu"}},
	{"ADD", []string{"add"}},
	{"SSM_CONV", []string{"causal_conv1d"}},
	{"GATED_DELTA_NET", []string{"gated_delta_rule"}},
	{"TOPK_MOE", []string{"router"}},
	{"ARGMAX", []string{"argmax"}},
}

const mostParts = 4 // largest number of launches of one of our operators

// candidates returns our operators that may do the work of a row.
func (m *model) candidates(r *shapeRow) []int {
	switch {
	case r.matrix():
		return m.shapes[r.shape]
	case strings.Contains(r.op, "NORM"):
		return m.norms[r.width]
	}
	for _, c := range counterparts {
		if strings.HasPrefix(r.op, c.op) {
			return m.ofKinds(c.kinds...)
		}
	}
	return nil
}

// group returns a text that is the same for all rows with the same candidates.
func (r *shapeRow) group() string {
	switch {
	case r.matrix():
		return fmt.Sprintf("matrix %d %d", r.m, r.k)
	case strings.Contains(r.op, "NORM"):
		return fmt.Sprintf("norm %d", r.width)
	}
	for _, c := range counterparts {
		if strings.HasPrefix(r.op, c.op) {
			return c.op
		}
	}
	return r.text
}

// joinShapes adds the launches of a step whose rows have only operations and shapes. All operators that do an
// operation at a shape are joined with the rows of this shape, if the number of rows is the number of
// operators or a small multiple of it. Otherwise the rows become operators that only the profile has, with
// the class of work that all candidates share.
func (r *recorder) joinShapes(m *model, step *stepRows, rows []shapeRow) error {
	total, launches := map[string]int{}, len(step.launches)
	for i := range rows {
		if err := r.room(rows[i].count); err != nil {
			return err
		}
		if launches += rows[i].count; launches > maxRows {
			return r.room(launches)
		}
		total[rows[i].group()] += rows[i].count
	}
	// A pool holds the candidates of a group that are not joined with a row yet. `adds` are the candidates
	// whose result is added to another value, and `others` are all other candidates.
	type pool struct{ adds, others []int }
	pools := map[string]*pool{}
	for i := range rows {
		row, group := &rows[i], rows[i].group()
		list := m.candidates(row)
		kernel, err := r.name(row.text)
		if err != nil {
			return err
		}
		l, label := launch{kernel: kernel, time: row.time}, ""
		parts := 0
		if len(list) > 0 && total[group]%len(list) == 0 {
			parts = total[group] / len(list)
		}
		if parts == 0 || parts > mostParts || parts > 1 && row.matrix() {
			own := trace.Op{Name: kernel, Kind: row.op, Class: string(m.shared(row, list))}
			for range row.count {
				if err := r.putOwn(step, own, l); err != nil {
					return err
				}
			}
			continue
		}
		p := pools[group]
		if p == nil {
			p = &pool{}
			for range parts {
				for _, c := range list {
					if m.added[c] {
						p.adds = append(p.adds, c)
					} else {
						p.others = append(p.others, c)
					}
				}
			}
			pools[group] = p
		}
		if l.joined = trace.JoinedByShape; !row.matrix() {
			label = strings.ToLower(row.op)
		}
		for range row.count {
			from := &p.others
			if row.adds() && len(p.adds) > 0 || len(p.others) == 0 {
				from = &p.adds
			}
			if err := r.put(step, (*from)[0], label, l); err != nil {
				return err
			}
			*from = (*from)[1:]
		}
	}
	return nil
}

// shared returns the class of work of a row that is not joined with an operator. It is the class of the row's
// operation, if the operation has one. For a product with a matrix, it is the class of the candidates if they
// all have the same. A product without candidates belongs to attention if one of its sizes is the size of a
// head. The result is "" if the class is not known.
func (m *model) shared(r *shapeRow, list []int) workclass.Class {
	if c := workclass.OfOp(&trace.Op{Name: r.text, Kind: r.op}); c != workclass.Other {
		return c
	}
	if !r.matrix() {
		return ""
	}
	classes := make([]workclass.Class, 0, len(list))
	for _, i := range list {
		classes = append(classes, m.classes[i])
	}
	slices.Sort(classes)
	classes = slices.Compact(classes)
	switch {
	case len(classes) == 1:
		return classes[0]
	case len(classes) == 0 && m.head > 0 && (r.m == m.head || r.k == m.head):
		return workclass.Attention
	}
	return ""
}
