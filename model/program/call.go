package program

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// call converts one operator of the file to operators of the engine. Its methods return the operator's
// arguments by their names in package vulkan. If an argument is not of the expected kind, the method records
// an error in the builder.
type call struct {
	*builder
	op    *vulkan.Operator
	names []string
}

// describeValue describes a value of the file in an error message.
func describeValue(v vulkan.Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case *vulkan.Tensor:
		return fmt.Sprintf("a tensor of %s %v", v.Type, v.Dims)
	case vulkan.SymInt:
		return "a SymInt"
	case vulkan.ValueList:
		return "a list of values"
	case string:
		return fmt.Sprintf("%.40q", v)
	}
	return fmt.Sprint(v)
}

// arg returns an argument and its id.
func (c *call) arg(name string) (id int, v vulkan.Value) {
	k := slices.Index(c.names, name)
	if k < 0 {
		c.Errorf("the operator has no argument %s", name)
		return -1, nil
	}
	return c.op.Args[k], c.g.Values[c.op.Args[k]]
}

func (c *call) refuse(name, want string) {
	_, v := c.arg(name)
	c.Errorf("argument %s is %s, want %s", name, describeValue(v), want)
}

// none reports whether an argument is None.
func (c *call) none(name string) bool {
	_, v := c.arg(name)
	return v == nil
}

func (c *call) tensor(name string) graph.ValueID {
	id, v := c.arg(name)
	if _, ok := v.(*vulkan.Tensor); !ok {
		c.refuse(name, "a tensor")
		return graph.None
	}
	return c.tensorOf(id)
}

// fileTensor returns the tensor of the file for an argument. After an error it returns a tensor without dims.
func (c *call) fileTensor(name string) *vulkan.Tensor {
	_, v := c.arg(name)
	t, ok := v.(*vulkan.Tensor)
	if !ok {
		c.refuse(name, "a tensor")
		return &vulkan.Tensor{Constant: -1}
	}
	return t
}

// integer returns v as an integer. `ok` is false if v is not an integer. A file may store an integer as a
// float, because it stores equal arguments only once.
func integer(v vulkan.Value) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<62
	}
	return 0, false
}

func (c *call) int(name string) int {
	_, v := c.arg(name)
	n, ok := integer(v)
	if !ok {
		c.refuse(name, "an integer")
	}
	return clampInt(n)
}

// clampInt limits an integer to the range of 32 bits. In files, the largest int64 means "to the end".
func clampInt(n int64) int { return int(min(max(n, math.MinInt32), math.MaxInt32)) }

// intList returns an argument that is a list of integers, or one integer.
func (c *call) intList(name string) []int {
	switch _, v := c.arg(name); v.(type) {
	case []int64, vulkan.ValueList:
		return c.ints(name)
	}
	return []int{c.int(name)}
}

func (c *call) float(name string) float64 {
	_, v := c.arg(name)
	switch v := v.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	}
	c.refuse(name, "a number")
	return 0
}

// floatOr returns a number, or `byDefault` if the argument is None.
func (c *call) floatOr(name string, byDefault float64) float64 {
	if c.none(name) {
		return byDefault
	}
	return c.float(name)
}

func (c *call) bool(name string) bool {
	_, v := c.arg(name)
	switch v := v.(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	c.refuse(name, "true or false")
	return false
}

func (c *call) text(name string) string {
	_, v := c.arg(name)
	s, ok := v.(string)
	if !ok {
		c.refuse(name, "a text")
	}
	return s
}

func (c *call) ints(name string) []int {
	_, v := c.arg(name)
	switch list := v.(type) {
	case []int64:
		out := make([]int, len(list))
		for i, n := range list {
			out[i] = clampInt(n)
		}
		return out
	case int64:
		return []int{clampInt(list)}
	case vulkan.ValueList:
		out := make([]int, len(list))
		for i, id := range list {
			n, ok := integer(c.g.Values[id])
			if !ok {
				c.refuse(name, "integers")
			}
			out[i] = clampInt(n)
		}
		return out
	}
	c.refuse(name, "integers")
	return nil
}

func (c *call) floats(name string) []float64 {
	_, v := c.arg(name)
	switch list := v.(type) {
	case []float64:
		return list
	case []int64, vulkan.ValueList, int64: // a float may be stored as an equal integer
		var out []float64
		for _, n := range c.ints(name) {
			out = append(out, float64(n))
		}
		return out
	}
	c.refuse(name, "numbers")
	return nil
}

// symOf returns the integer whose value id is `id`. It is a fixed number, or a SymInt, which changes from run
// to run.
func (c *call) symOf(name string, id int) kind.Int {
	if _, is := c.g.Values[id].(vulkan.SymInt); is {
		v := &c.m.values[id]
		if v.is != isInt {
			c.Errorf("argument %s is SymInt %%%d, which no earlier operator computes", name, id)
		}
		return v.symInt
	}
	n, ok := integer(c.g.Values[id])
	if !ok {
		c.refuse(name, "an integer or a SymInt")
	}
	return kind.Fixed(clampInt(n))
}

func (c *call) sym(name string) kind.Int {
	id, _ := c.arg(name)
	if c.Err() != nil {
		return kind.Int{}
	}
	return c.symOf(name, id)
}

// symOr returns an integer argument, or `byDefault` if the argument is None.
func (c *call) symOr(name string, byDefault int) kind.Int {
	if c.none(name) {
		return kind.Fixed(byDefault)
	}
	return c.sym(name)
}

func (c *call) syms(name string) []kind.Int {
	_, v := c.arg(name)
	var out []kind.Int
	if list, ok := v.(vulkan.ValueList); ok {
		for _, id := range list {
			out = append(out, c.symOf(name, id))
		}
		return out
	}
	for _, n := range c.ints(name) {
		out = append(out, kind.Fixed(n))
	}
	return out
}

func (c *call) tensors(name string) []graph.ValueID {
	_, v := c.arg(name)
	list, ok := v.(vulkan.ValueList)
	if !ok {
		c.refuse(name, "a list of tensors")
	}
	out := make([]graph.ValueID, len(list))
	for i, id := range list {
		out[i] = c.tensorOf(id)
	}
	return out
}

// outputs returns the ids of the operator's outputs.
func (c *call) outputs() []int {
	id := c.op.Args[len(c.op.Args)-1]
	if list, ok := c.g.Values[id].(vulkan.ValueList); ok {
		return list
	}
	return []int{id}
}

// outDims returns the maximum shape that the file states for output number i.
func (c *call) outDims(i int) []int {
	if ids := c.outputs(); i < len(ids) {
		if t, ok := c.g.Values[ids[i]].(*vulkan.Tensor); ok {
			return t.Dims
		}
	}
	return nil
}

// give records which tensors of the engine's graph hold the outputs of the operator, in order. The last
// outputs may be missing if no later operator reads them.
func (c *call) give(outputs ...graph.ValueID) {
	ids := c.outputs()
	for i, v := range outputs {
		if c.Err() != nil {
			return
		}
		if i >= len(ids) {
			c.Errorf("the operator has %d outputs in the file, want at least %d", len(ids), len(outputs))
			return
		}
		t, ok := c.g.Values[ids[i]].(*vulkan.Tensor)
		known := false
		var dtype graph.DType
		if ok {
			dtype, known = deviceType(t.Type)
		}
		if !known || dtype != c.DType(v) {
			c.Errorf("output %%%d is %s in the file, but the operator computes a tensor of type %s", ids[i],
				describeValue(c.g.Values[ids[i]]), c.DType(v))
			return
		}
		if most := c.MaxDims(v); !fits(most, t.Dims) {
			c.Errorf("output %%%d has shape %v in the file, but the operator computes shape %v", ids[i],
				t.Dims,
				most)
			return
		}
		c.set(ids[i], v)
	}
}

// fits reports whether a tensor of shape dims fits into `most`, the maximum shape that the file states.
func fits(dims, most []int) bool {
	if len(dims) != len(most) {
		return false
	}
	for k, d := range dims {
		if d > most[k] {
			return false
		}
	}
	return true
}

// giveInt records n, an integer of the engine's graph, as the output of the operator.
func (c *call) giveInt(n kind.Int) {
	id := c.outputs()[0]
	if _, is := c.g.Values[id].(vulkan.SymInt); is && c.Err() == nil {
		c.m.values[id] = value{is: isInt, symInt: n}
	} // otherwise the file already contains the integer
}

// name returns the name for the next operator that the call adds to the graph of the engine. The first is
// named "12.sigmoid", for example, and the second "12.sigmoid.2".
func (c *call) name() string {
	name := "added." + shortName(c.op.Name)
	if file := c.named[c.op.ID]; file != "" {
		name = operatorName(c.op.ID, file)
	}
	if c.added[name]++; c.added[name] > 1 {
		name += fmt.Sprintf(".%d", c.added[name])
	}
	return name
}

// all adds an operator to the graph of the engine and returns its outputs.
func (c *call) all(kindName string, args kind.Args) []graph.ValueID {
	if c.Err() != nil {
		return nil
	}
	return ops.New(c.Builder, kindName, c.name(), args)
}

// one adds an operator to the graph of the engine and returns its first output.
func (c *call) one(kindName string, args kind.Args) graph.ValueID {
	return kind.First(c.all(kindName, args))
}

// view returns the elements of x with other dims, or x itself if x has these dims. One of the dims may be
// basic.Rest: its size then follows from the other dims and the number of elements of x.
func (c *call) view(x graph.ValueID, dims ...kind.Int) graph.ValueID {
	if c.Err() != nil {
		return graph.None
	}
	info, ok := c.Value(x)
	if ok && info.Role != graph.State && len(dims) == len(info.MaxDims) {
		open := 0 // number of dims that can change or are basic.Rest
		for k, d := range dims {
			if d != kind.Fixed(info.MaxDims[k]) || c.MinDims(x)[k] != info.MaxDims[k] {
				open++
			}
			if !d.IsSym && d.Fixed >= 0 && d.Fixed != info.MaxDims[k] {
				open = len(dims) + 1
			}
		}
		if open <= 1 {
			return x
		}
	}
	return c.one("view", kind.Args{"x": x, "dims": slices.Clone(dims)})
}

// copyOf returns x itself, or a copy if an operator may change x later.
func (c *call) copyOf(x graph.ValueID) graph.ValueID {
	if info, ok := c.Value(x); !ok || info.Role != graph.State {
		return x
	}
	return c.view(x, c.dimsOf(x)...)
}

// size is the key of builder.sizes: a dim of a tensor.
type size struct {
	of   graph.ValueID
	axis int
}

// dim returns the live size of a dim of x.
func (c *call) dim(x graph.ValueID, axis int) kind.Int {
	if c.Err() != nil {
		return kind.Int{}
	}
	most := c.MaxDims(x)[axis]
	if c.MinDims(x)[axis] == most {
		return kind.Fixed(most)
	}
	if n, ok := c.sizes[size{x, axis}]; ok {
		return n
	}
	v := basic.SymSize(c.Builder, c.name(), x, axis)
	if c.Err() != nil {
		return kind.Int{}
	}
	c.sizes[size{x, axis}] = kind.Sym(v)
	return kind.Sym(v)
}

// dimsOf returns the live dims of x.
func (c *call) dimsOf(x graph.ValueID) []kind.Int {
	dims := make([]kind.Int, len(c.MaxDims(x)))
	for k := range dims {
		dims[k] = c.dim(x, k)
	}
	return dims
}

// axis returns the index of a dim of x. A negative k counts from the end.
func (c *call) axis(x graph.ValueID, k int) int {
	rank := len(c.MaxDims(x))
	if k < 0 {
		k += rank
	}
	if (k < 0 || k >= rank) && c.Err() == nil {
		c.Errorf("dim %d is out of range: the tensor has rank %d", k, rank)
	}
	if c.Err() != nil {
		return 0
	}
	return k
}

func (c *call) scalar(v float64) graph.ValueID { return c.filled(v, 1) }

// filled returns a constant of f32 whose elements are all v.
func (c *call) filled(v float64, dims ...int) graph.ValueID { return c.filledAs(pte.Float32, v, dims) }

// filledAs returns a constant whose elements are all v. t is its element type in the file.
func (c *call) filledAs(t pte.Type, v float64, dims []int) graph.ValueID {
	return c.computed(t, dims, v, 0)
}

// computed returns a constant with the elements `first`, `first + step`, and so on. t is its element type in
// the file.
func (c *call) computed(t pte.Type, dims []int, first, step float64) graph.ValueID {
	dtype, ok := deviceType(t)
	if !ok && c.Err() == nil {
		c.Errorf("%w", &TypeError{t})
	}
	if c.Err() != nil {
		return graph.None
	}
	n := graph.Numel(dims)
	name := fmt.Sprintf("filled %s %v %v", dtype, float32(first), dims)
	if step != 0 {
		name += fmt.Sprintf(" step %v", float32(step))
	}
	return c.Constant(name, dtype, slices.Clone(dims), func() ([]byte, error) {
		out := make([]byte, 0, 4*n)
		for i := range n {
			bits := math.Float32bits(float32(first + float64(i)*step))
			if dtype == graph.I32 {
				bits = uint32(int32(min(max(first+float64(i)*step, math.MinInt32), math.MaxInt32)))
			}
			out = binary.LittleEndian.AppendUint32(out, bits)
		}
		return out, nil
	})
}
