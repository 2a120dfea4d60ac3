package ops

import (
	"fmt"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/reference"
)

// fuseNorm leaves a norm of one row to products. Those that read it multiply their sums by its scale at the
// end, so nothing waits for that. What the scale is made of, and the row by the weights of the norm, comes
// from what gives the row (a product, an embedding or a norm with a residual) and has each element in hand:
// y * weight, and sums of squares of some columns each. Where none of these gives the row each of those that
// read the norm has all of it in any case, multiplies by the weights what it loads, and sums the squares
// beside its products. That is work for each of their workgroups, so they must not be too many
// (linearTuning). With more rows all stay as they are.
//
// It takes the norm and each of the others by itself, in the order of the graph.
var fuseNorm = graph.Fusion{
	Name: "norm", Doc: "a norm of one row is taken in by what is before it and the linears after it",
	Pattern: graph.Pattern{Kinds: slices.Concat(linearKinds, embeddingKinds, []string{kindRMSNorm.Name})},
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
				next := normBehind(b, o.y, gemvRows(shape.Last(b.MaxDims(o.x)), 1), bound, leavesNorm)
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
			rows := rowsBehind(b, o)
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
		case *embedding:
			if len(o.parts) > 1 {
				return nil
			}
			bound := len(o.bindings(embeddingRows, &o.parts[0]))
			next := normBehind(b, o.y, eachOfStream(b, o.y), bound, leavesNorm)
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

// preparer is an operator that can do of a norm of what it gives what a single row takes element by element.
type preparer interface {
	prepares() *rmsNorm // nil: none
}

// nextNorm is a norm of y, which leaves says can be left, of which the kernel for one row does its part
// wherever y has one; nil where there is none.
func (o *linear) nextNorm(b *graph.Builder, leaves func(*graph.Builder, *rmsNorm) bool) *rmsNorm {
	s := &o.shapes[linearGEMV]
	if s.batch != 1 || len(o.parts) > 1 || o.gated != nil {
		return nil
	}
	next := normBehind(b, o.y, s.rows, len(o.bindings(linearGEMV, &o.parts[0])), leaves)
	if next == nil || o.Last || next.Last || o.before == nil || o.before.leavesAll() {
		return next
	}
	return nil // a row that is given as it is takes another kernel
}

// normBehind is a norm of y that can be left to what gives y, with a sum of squares for each so many columns
// in a kernel that binds so much already, and, as leaves says, to the products after; nil where there is
// none.
func normBehind(b *graph.Builder, y graph.ValueID, each, bound int,
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

// eachOfStream is how many columns a sum of squares has after the layer that adds to the row y: its last
// product gives those. The products of the first layer then run the kernels of all others.
func eachOfStream(b *graph.Builder, y graph.ValueID) int {
	each := gemvRows(shape.Last(b.MaxDims(y)), 1)
	for range 2 { // attention's, and the MLP's
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

// leavesNorm says whether a norm can be left to products.
func leavesNorm(b *graph.Builder, o *rmsNorm) bool { return rowsBehind(b, o) > 0 }

// rowsBehind is how many rows of weights read a norm; 0 where a route was asked of it, where something else
// reads it, or a product that cannot do its part wherever that has one row.
func rowsBehind(b *graph.Builder, o *rmsNorm) (rows int) {
	readers, all := b.Readers(o.y)
	if !all || o.other != nil || o.residual != graph.None || b.RouteAsked(o.y) {
		return 0
	}
	for _, r := range readers {
		product, ok := r.(*linear)
		if !ok || product.residual != graph.None || product.shapes[linearGEMV].batch != 1 ||
			b.RouteAsked(product.y) {
			return 0
		}
		rows += product.w.Rows
	}
	return rows
}

// sums is how many squares has.
func (o *rmsNorm) sums() int { return shape.DivUp(o.width, o.each) }

// declare puts what the norm is given into the spec of the operator that gives it.
func (o *rmsNorm) declare(s *graph.Spec) {
	s.Inputs = append(s.Inputs, o.weight)
	s.Outputs = append(s.Outputs, o.weighted, o.squares)
}

// given are the bindings of a kernel that gives it.
func (o *rmsNorm) given() []graph.Binding {
	return []graph.Binding{
		graph.Bind("next_weight", o.weight), graph.Bind("weighted", o.weighted), graph.Bind("next_squares",
			o.squares),
	}
}

// give settles the dims of what the norm is given: left, where the route in force does not.
func (o *rmsNorm) give(p *graph.Planner, gives bool) {
	if gives {
		p.SetDims(o.weighted, 1, o.width)
		p.SetDims(o.squares, o.sums())
		return
	}
	p.Defer(o.weighted, 1, o.width)
	p.Defer(o.squares, o.sums())
}

// addCost adds what giving it costs a dispatch.
func (o *rmsNorm) addCost(l *graph.Launch) {
	l.Bytes += 4 * int64(2*o.width+o.sums())
	l.FLOPs += 3 * int64(o.width)
}

// giveReference gives what a row y is to give.
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

// givenTolerance is how near what is given must come, of a row that comes as near as its tolerance says.
func (o *rmsNorm) givenTolerance(r *reference.Ref, v graph.ValueID,
	row reference.Tolerance,
) reference.Tolerance {
	y := r.Largest(o.x)
	near := (row.Rel+row.Row)*y + row.Abs
	if v == o.weighted {
		return reference.Tolerance{Rel: reference.OneRounding.Rel, Abs: near * r.Largest(o.weight), Why: row.Why + ", by weights"}
	}
	return reference.Tolerance{
		Rel: reference.SumRoundings(o.each) * reference.Rounding, Abs: 2 * float64(o.each) * near * y,
		Why: fmt.Sprintf("%s, and %d squares of them", row.Why, o.each),
	}
}
