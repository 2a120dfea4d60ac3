package ops

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/experts"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/reference"
)

// fuseNorm removes the dispatch of a norm if there is only one row. The linears after the norm multiply their
// sums by the scale of the norm at the end, so that no kernel waits for the scale.
//
// If a linear, an embedding or a norm with a residual computes the row y, its kernel also computes the
// element-wise part of the norm. This part consists of y * weight and of several sums of squares of y. Each
// sum covers some of the columns. If another operator computes the row, each linear after the norm computes
// this part itself, because the linear loads the whole row anyway. The linear multiplies the row by the
// norm's weights, and adds up the squares in the same loop as its products. Each workgroup of the linears
// then does additional work, so the rule applies only if the linears have few enough weights (linearTuning).
// With more than one row all operators work as without the rule.
//
// The rule replaces the norm and the operators before and after it separately, in the order of the graph.
var fuseNorm = graph.Fusion{
	Name: "norm", Doc: "for one row, a norm has no dispatch: the operator before it and the linears after it compute it",
	Pattern: graph.Pattern{
		Kinds: slices.Concat(linearKinds, embeddingKinds, []string{kindRMSNorm.Name}, experts.LinearKinds),
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		switch o := m.Last().(type) {
		case *rmsNorm:
			if o.folds > 0 {
				return nil
			}
			if o.residual != graph.None {
				if o.Vec != 4 {
					return nil
				}
				bound := len(o.Spec().Slots[0].Uses[normRows].Bind)
				next := normAfter(b, o.y, gemvRows(shape.Last(b.MaxDims(o.x)), 1), bound, leavesNorm)
				if next == nil {
					return nil
				}
				fused := *o
				fused.next = next
				fused.makeKernel(b)
				return &fused
			}
			if before, ok := b.Producer(o.x).(preparer); ok {
				if next := before.prepares(); next != nil && next.y == o.y {
					return next
				}
			}
			rows := rowsAfter(b, o)
			if rows == 0 || rows*shape.Last(b.MaxDims(o.x)) > tuned.norm {
				return nil
			}
			fused := *o
			fused.folds = 1
			return &fused
		case *linear:
			fused := *o
			if norm, ok := b.Producer(o.x).(*rmsNorm); ok && norm.folds > 0 {
				fused.before = norm
			}
			if o.next == nil {
				fused.next = fused.nextNorm(b, leavesNorm)
			}
			if fused.before == o.before && fused.next == o.next {
				return nil
			}
			fused.makeKernels(b)
			return &fused
		case normReader:
			norm, ok := b.Producer(o.Reads()).(*rmsNorm)
			if !ok || norm.folds == 0 || norm.sum != nil {
				return nil
			}
			n := &experts.Norm{
				X: norm.x, Weight: norm.weight, Eps: norm.eps, Weighted: norm.weighted, Squares: norm.squares,
			}
			if norm.prepared() {
				n.Sums = norm.sums()
			}
			return o.ReadNorm(b, n)
		case *embedding:
			if len(o.parts) > 1 {
				return nil
			}
			bound := len(o.bindings(embeddingRows, &o.parts[0]))
			next := normAfter(b, o.y, eachOfStream(b, o.y), bound, leavesNorm)
			if next == nil {
				return nil
			}
			fused := *o
			fused.next = next
			fused.makeKernels(b)
			return &fused
		}
		return nil
	},
}

// preparer is an operator whose kernel for one row can also compute the element-wise part of the next norm.
type preparer interface {
	prepares() *rmsNorm // returns this next norm, or nil
}

// nextNorm returns the norm of y, if the linear's kernel for one row can compute the norm's element-wise
// part. Otherwise nextNorm returns nil. `leaves` is a function that reports whether the dispatch of a norm
// can be removed.
func (o *linear) nextNorm(b *graph.Builder, leaves func(*graph.Builder, *rmsNorm) bool) *rmsNorm {
	s := &o.shapes[linearGEMV]
	if s.batch != 1 || len(o.parts) > 1 || o.gated != nil {
		return nil
	}
	next := normAfter(b, o.y, s.rows, len(o.bindings(linearGEMV, &o.parts[0])), leaves)
	if next == nil || o.Last || next.Last || o.before == nil || o.before.leavesAll() {
		return next
	}
	// In some steps x is in memory, although it has a single row. The linear then runs another kernel, which
	// does not compute the element-wise part of the norm.
	return nil
}

// normAfter returns a norm of y whose dispatch can be removed. The dispatch can be removed if leaves(b,
// norm) is true. normAfter returns nil if there is no such norm. `each` is the number of columns in each
// sum of squares that the producer of y computes. `bound` is the number of storage buffers that the
// producer's kernel binds already.
func normAfter(b *graph.Builder, y graph.ValueID, each, bound int,
	leaves func(*graph.Builder, *rmsNorm) bool,
) *rmsNorm {
	width := shape.Last(b.MaxDims(y))
	if b.RouteAsked(y) || width%spreadColumns != 0 ||
		bound+len((&rmsNorm{}).given()) > int(b.Limits().MaxStorageBuffers) {
		return nil
	}
	readers, _ := b.Readers(y)
	for _, r := range readers {
		if norm, ok := r.(*rmsNorm); ok && norm.x == y && leaves(b, norm) {
			next := *norm
			next.folds, next.width, next.each = 1, width, each
			next.weighted = spreadTensor(b, b.Name(norm.y)+".weighted", width)
			next.squares = b.Tensor(b.Name(norm.y)+".squares", graph.F32)
			return &next
		}
	}
	return nil
}

// eachOfStream returns the number of columns in each sum of squares of a row y that an embedding computes.
// The last linear of each layer also computes such sums for its row. eachOfStream returns the number that the
// last linear of the first layer uses, so that the linears of the first layer can use the same kernels as
// those of all other layers.
func eachOfStream(b *graph.Builder, y graph.ValueID) int {
	each := gemvRows(shape.Last(b.MaxDims(y)), 1)
	for range 2 { // visit the last linear of attention, then the last linear of the MLP
		readers, _ := b.Readers(y)
		i := slices.IndexFunc(readers, func(r graph.Operator) bool {
			product, ok := r.(*linear)
			return ok && product.residual == y && product.shapes[linearGEMV].batch == 1
		})
		if i < 0 {
			break
		}
		product := readers[i].(*linear)
		each, y = product.shapes[linearGEMV].rows, product.y
	}
	return each
}

// leavesNorm(b, o) reports whether the linears that read the norm o can compute it. The norm then needs no
// dispatch.
func leavesNorm(b *graph.Builder, o *rmsNorm) bool { return rowsAfter(b, o) > 0 }

// rowsAfter returns the total number of weight rows of the linears that read a norm. It returns 0 if these
// linears cannot compute the norm. There are three such cases: the user requested a route, an operator that
// is not a linear reads the norm, or a linear has no suitable kernel for one row.
func rowsAfter(b *graph.Builder, o *rmsNorm) (rows int) {
	readers, all := b.Readers(o.y)
	if !all || o.other != nil || o.residual != graph.None || b.RouteAsked(o.y) {
		return 0
	}
	for _, r := range readers {
		n := 0
		switch product := r.(type) {
		case *linear:
			if product.residual == graph.None && product.shapes[linearGEMV].batch == 1 &&
				!b.RouteAsked(product.y) {
				n = product.w.Rows
			}
		case normReader:
			n = product.NormRows(b)
		}
		if n == 0 {
			return 0
		}
		rows += n
	}
	return rows
}

// normReader is an operator that multiplies its input by the matrices of experts. If the input is the result
// of a norm, the operator's kernel for one token can also compute this norm.
type normReader interface {
	NormRows(b *graph.Builder) int
	Reads() graph.ValueID
	ReadNorm(b *graph.Builder, n *experts.Norm) graph.Operator
}

// sums() returns the number of sums in the tensor `squares`.
func (o *rmsNorm) sums() int { return shape.DivUp(o.width, o.each) }

// declare(s) adds the tensors `weighted` and `squares` to s, the spec of the operator that computes them.
func (o *rmsNorm) declare(s *graph.Spec) {
	s.Inputs = append(s.Inputs, o.weight)
	s.Outputs = append(s.Outputs, o.weighted, o.squares)
}

// given() returns the additional bindings of a kernel that computes the tensors `weighted` and `squares`.
func (o *rmsNorm) given() []graph.Binding {
	return []graph.Binding{
		graph.Bind("next_weight", o.weight), graph.Bind("weighted", o.weighted), graph.Bind("next_squares",
			o.squares),
	}
}

// give(p, gives) sets the dims of the tensors `weighted` and `squares` if `gives` is true, which means that
// the chosen route computes them. Otherwise it defers both.
func (o *rmsNorm) give(p *graph.Planner, gives bool) {
	if gives {
		p.SetDims(o.weighted, 1, o.width)
		p.SetDims(o.squares, o.sums())
		return
	}
	p.Defer(o.weighted, 1, o.width)
	p.Defer(o.squares, o.sums())
}

// addCost adds the cost of computing the tensors `weighted` and `squares` to the cost of a dispatch.
func (o *rmsNorm) addCost(l *graph.Launch) {
	l.Bytes += 4 * int64(2*o.width+o.sums())
	l.FLOPs += 3 * int64(o.width)
}

// giveReference computes the reference values of the tensors `weighted` and `squares` from the row y.
func (o *rmsNorm) giveReference(r *reference.Ref, y reference.Tensor) {
	weight := r.Tensor(o.weight)
	weighted, squares := make([]float64, o.width), reference.Zeros(o.sums())
	for i, v := range y.Data {
		weighted[i] = v * weight.Data[i]
		squares.Data[i/o.each] += v * v
	}
	r.Set(o.weighted, spreadOf(weighted))
	r.Set(o.squares, squares)
}

// givenTolerance returns the tolerance of v, which is the tensor `weighted` or the tensor `squares`. `row`
// is the tolerance of the row from which both are computed.
func (o *rmsNorm) givenTolerance(r *reference.Ref, v graph.ValueID,
	row reference.Tolerance,
) reference.Tolerance {
	y := r.Largest(o.x)
	near := (row.Rel+row.Row)*y + row.Abs
	if v == o.weighted {
		return reference.Tolerance{Rel: reference.OneRounding.Rel, Abs: near * r.Largest(o.weight), Why: row.Why + "; multiplied by the norm's weights"}
	}
	return reference.Tolerance{
		Rel: reference.SumRoundings(o.each) * reference.Rounding, Abs: 2 * float64(o.each) * near * y,
		Why: fmt.Sprintf("%s; each element is a sum of %d squares of such results", row.Why, o.each),
	}
}
