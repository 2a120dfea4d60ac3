package program

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// constantTensor returns the tensor of an argument. It records an error if the tensor is not a constant with
// this type and rank.
func (c *call) constantTensor(name string, t pte.Type, rank int) *vulkan.Tensor {
	v := c.fileTensor(name)
	if c.Err() == nil && (v.Constant < 0 || v.Type != t || len(v.Dims) != rank) {
		c.refuse(name, fmt.Sprintf("a constant of type %s with %d dims", t, rank))
	}
	if c.Err() == nil {
		if err := c.g.Constants[v.Constant].Missing; err != nil {
			c.Errorf("%s: %w", name, err)
		}
	}
	if c.Err() != nil {
		return &vulkan.Tensor{Constant: -1, Dims: make([]int, rank)}
	}
	return v
}

// bytesOf returns a function that reads the bytes of a constant.
func (c *call) bytesOf(t *vulkan.Tensor) func() ([]byte, error) {
	if c.Err() != nil {
		return nil
	}
	data, n := c.g.Constants[t.Constant].Data, t.Bytes()
	return func() ([]byte, error) {
		all, err := data.Bytes()
		if err != nil {
			return nil, err
		}
		return all[:n], nil
	}
}

// q4 describes a matrix of 4-bit weights in a file. `group` is the number of columns that share a scale.
type q4 struct {
	rows, cols, group int
	high              bool // the even columns are in the high 4 bits of each byte
	weights, scales   *vulkan.Tensor
	// scaleAt returns the index of a group's scale in the tensor scales.
	scaleAt func(row, group int) int
}

// fourBits reports whether the engine has a 4-bit format for a matrix. The number of columns and the group
// size must be multiples of 8, and the groups must fill each row.
func fourBits(cols, group int) bool {
	return group > 0 && cols%8 == 0 && group%8 == 0 && cols%group == 0
}

// asF32 returns a warning about 4-bit matrices that are converted to f32, or "" if there are none.
func (b *builder) asF32() string {
	n := 0
	for i := range b.g.Operators {
		op := &b.g.Operators[i]
		if !op.Known() || !strings.Contains(op.Name, "q4gsw") {
			continue
		}
		c := call{builder: b, op: op, names: op.Arguments()}
		out := c.outDims(0)
		x, ok := b.g.Values[op.Args[0]].(*vulkan.Tensor)
		if ok && !strings.Contains(op.Name, "embedding") {
			out = x.Dims
		}
		_, v := c.arg("group_size")
		if group, ok := integer(v); ok && len(out) > 0 && !fourBits(out[len(out)-1], clampInt(group)) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("operators with 4-bit weights that run with f32 weights, which take 8 times the "+
		"memory: %d. Their number of columns or their group size is not a multiple of 8, or the last group is "+
		"not full", n)
}

// matrix returns the weights in a format of the engine: 4 bits if possible (see fourBits), otherwise f32. The
// conversion to f32 happens when the weights are loaded.
func (c *call) matrix(q q4) weight.Matrix {
	if c.Err() != nil {
		return weight.Matrix{}
	}
	packed := (q.cols + 1) / 2
	groups := (q.cols + max(q.group, 1) - 1) / max(q.group, 1)
	switch {
	case q.group < 1:
		c.Errorf("the group size is %d, want at least 1", q.group)
	case q.weights.Dims[0] < q.rows || q.weights.Dims[1] < packed:
		c.Errorf("the weights have shape %v, but %d rows of %d columns need a shape of at least %v",
			q.weights.Dims, q.rows, q.cols, []int{q.rows, packed})
	case graph.Numel(q.scales.Dims) <= q.scaleAt(q.rows-1, groups-1):
		c.Errorf("the scales have shape %v, which is too small for %d rows with %d groups each",
			q.scales.Dims, q.rows, groups)
	}
	if c.Err() != nil {
		return weight.Matrix{}
	}
	weights, scales := c.bytesOf(q.weights), c.bytesOf(q.scales)
	name := c.constantName(q.weights.Constant)
	if q.rows != q.weights.Dims[0] {
		name += fmt.Sprintf("[:%d]", q.rows) // a distinct name, because another operator may use all rows
	}
	stride := q.weights.Dims[1]
	load := func() (nibbles, inRows []byte, err error) {
		from, err := weights()
		if err != nil {
			return nil, nil, err
		}
		factors, err := scales()
		if err != nil {
			return nil, nil, err
		}
		for row := range q.rows {
			nibbles = append(nibbles, from[row*stride:][:packed]...)
			for g := range groups {
				inRows = append(inRows, factors[4*q.scaleAt(row, g):][:4]...)
			}
		}
		return nibbles, inRows, nil
	}
	m := weight.Matrix{Name: name, Rows: q.rows, Cols: q.cols}
	if fourBits(q.cols, q.group) {
		m.Format = weight.Q4GSW(q.group, weight.Q4Options{HighNibbles: q.high})
		if q.group == q.cols {
			m.Format = weight.QCS4W(q.cols, weight.Q4Options{HighNibbles: q.high})
		}
		m.Name = name + " with scales " + c.constantName(q.scales.Constant)
		m.Data = func() ([][]byte, error) {
			nibbles, inRows, err := load()
			return [][]byte{nibbles, inRows}, err
		}
		return m
	}
	m.Format, m.Name = weight.F32, name+" as f32"
	m.Data = func() ([][]byte, error) {
		nibbles, inRows, err := load()
		if err != nil {
			return nil, err
		}
		out := make([]byte, 0, 4*q.rows*q.cols)
		for row := range q.rows {
			for col := range q.cols {
				number := nibbles[row*packed+col/2]
				if (col%2 == 1) != q.high {
					number >>= 4
				}
				at := 4 * (row*groups + col/q.group)
				scale := math.Float32frombits(binary.LittleEndian.Uint32(inRows[at:]))
				out = binary.LittleEndian.AppendUint32(out, math.Float32bits((float32(number&15)-8)*scale))
			}
		}
		return [][]byte{out}, nil
	}
	return m
}

// bias returns the first n elements of a constant. The exporter may have added padding. bias returns
// graph.None if the argument is None.
func (c *call) bias(name string, n int) graph.ValueID {
	if c.none(name) || c.Err() != nil {
		return graph.None
	}
	t := c.constantTensor(name, pte.Float32, 1)
	if c.Err() == nil && t.Dims[0] < n {
		c.refuse(name, fmt.Sprintf("at least %d elements", n))
	}
	if c.Err() != nil {
		return graph.None
	}
	id, _ := c.arg(name)
	return c.constant(id, t, []int{n})
}

// linear adds an operator that multiplies x by a matrix of weights and adds a bias. `bias` is the name of the
// argument with the bias; "" means no bias.
func (c *call) linear(x graph.ValueID, m weight.Matrix, bias string) graph.ValueID {
	args := kind.Args{"x": x, "weight": m}
	if bias != "" {
		args["bias"] = c.bias(bias, m.Rows)
	}
	return c.one(m.Format.KindName("linear"), args)
}

// lastDim returns the size of the last dim of x. It records an error if this size can change from run to run.
func (c *call) lastDim(x graph.ValueID) int {
	dims := c.MaxDims(x)
	if c.Err() != nil {
		return 0
	}
	if len(dims) == 0 || c.MinDims(x)[len(dims)-1] != dims[len(dims)-1] {
		c.Errorf("%s has shape %v, want a last dim whose size is the same in every run", c.Name(x), dims)
		return 0
	}
	return dims[len(dims)-1]
}

// linearMatrix returns the weights of linear_q4gsw, or of its variant with quantized activations. In the
// file, the scales have shape [groups, rows].
func (c *call) linearMatrix(x graph.ValueID) weight.Matrix {
	weights := c.constantTensor("weights", pte.Uint8, 2)
	scales := c.constantTensor("weight_scales", pte.Float32, 2)
	q := q4{
		rows: c.outWidth(), cols: c.lastDim(x), group: c.int("group_size"), weights: weights,
		scales: scales,
	}
	q.scaleAt = func(row, group int) int { return group*scales.Dims[1] + row }
	if c.Err() == nil && scales.Dims[1] < q.rows {
		c.refuse("weight_scales", fmt.Sprintf("one scale for each of the %d rows", q.rows))
	}
	return c.matrix(q)
}

// outWidth returns the size of the last dim of the first output.
func (c *call) outWidth() int {
	dims := c.outDims(0)
	if len(dims) == 0 || dims[len(dims)-1] < 1 {
		c.Errorf("the output has shape %v in the file, want at least one dim", dims)
		return 1
	}
	return dims[len(dims)-1]
}

func linearQ4GSW(c *call) {
	x := c.tensor("self")
	c.give(c.linear(x, c.linearMatrix(x), "bias"))
}

// linearQuantized is linear_q4gsw with activations that are rounded to 8 bits. It multiplies the integers and
// scales the result afterwards, because sums of integers are exact.
func linearQuantized(c *call) {
	x, scale := c.tensor("input"), c.tensor("input_scales")
	rounded := c.one("quantize_affine", kind.Args{
		"x": x, "scale": scale, "zero_point": c.tensor("input_zp"), "quant_min": -128, "quant_max": 127,
	})
	m := c.linearMatrix(x)
	y := c.linear(rounded, m, "")
	var axes []int
	for k := range c.MaxDims(scale) {
		if k+1 < len(c.MaxDims(x)) { // in some files, scale has another last dim of size 1
			axes = append(axes, k)
		}
	}
	y = c.one("mul", kind.Args{"a": y, "b": c.view(scale, c.shapeOf(scale, append(axes, -1))...)})
	if bias := c.bias("bias", m.Rows); bias != graph.None {
		y = c.one("add", kind.Args{"a": y, "b": bias})
	}
	c.give(y)
}

// chooseQParams computes the scale and the zero point of each block. Only blocks of exactly one row are
// supported.
func chooseQParams(c *call) {
	x, block := c.tensor("input"), c.ints("block_size")
	for k, n := range block {
		last := k == len(block)-1
		if c.Err() == nil && (len(block) != len(c.MaxDims(x)) || !last && n != 1 || last &&
			n != c.lastDim(x)) {
			c.refuse("block_size", "blocks of exactly one row each")
		}
	}
	if c.text("mapping_type") != "ASYMMETRIC" {
		c.refuse("mapping_type", `"ASYMMETRIC"`)
	}
	args := kind.Args{"x": x, "quant_min": c.int("quant_min"), "quant_max": c.int("quant_max")}
	if !c.none("eps") {
		args["eps"] = c.float("eps")
	}
	out := c.all("choose_qparams_affine", args)
	for i := range out { // in some files, the outputs have another last dim of size 1
		if dims := c.outDims(i); len(dims) == len(c.MaxDims(x)) && c.Err() == nil {
			axes := make([]int, len(dims))
			for k := range axes {
				axes[k] = k
			}
			axes[len(axes)-1] = -1
			out[i] = c.view(out[i], c.shapeOf(out[i], axes)...)
		}
	}
	c.give(out...)
}

func linearQCS4W(c *call) {
	x := c.tensor("self")
	q := q4{
		rows: c.outWidth(), cols: c.lastDim(x), high: true, weights: c.constantTensor("weight", pte.Uint8, 2),
		scales:  c.constantTensor("scales", pte.Float32, 1),
		scaleAt: func(row, _ int) int { return row },
	}
	q.group = q.cols
	c.give(c.linear(x, c.matrix(q), ""))
}

func embeddingQ4GSW(c *call) {
	weights := c.constantTensor("weight", pte.Uint8, 2)
	scales := c.constantTensor("weight_scales", pte.Float32, 2)
	q := q4{
		rows: weights.Dims[0], cols: c.outWidth(), group: c.int("group_size"), high: !c.bool("is_linear_weight"),
		weights: weights, scales: scales,
	}
	q.scaleAt = func(row, group int) int { return row*scales.Dims[1] + group }
	c.give(c.embedding(c.matrix(q)))
}

func (c *call) embedding(m weight.Matrix) graph.ValueID {
	indices := c.tensor("indices")
	if c.Err() == nil {
		c.m.limitIndices(indices, m.Rows)
	}
	return c.one(m.Format.KindName("embedding"), kind.Args{"table": m, "indices": indices})
}

// denseMatrix returns an f32 constant as a matrix.
func (c *call) denseMatrix(name string) weight.Matrix {
	t := c.constantTensor(name, pte.Float32, 2)
	load := c.bytesOf(t)
	return weight.Matrix{
		Name: c.constantName(t.Constant), Rows: t.Dims[0], Cols: t.Dims[1], Format: weight.F32,
		Data: func() ([][]byte, error) {
			data, err := load()
			return [][]byte{data}, err
		},
	}
}

func linearF32(c *call) {
	c.give(c.linear(c.tensor("input"), c.denseMatrix("weight"), "bias"))
}

func embeddingF32(c *call) { c.give(c.embedding(c.denseMatrix("weight"))) }
