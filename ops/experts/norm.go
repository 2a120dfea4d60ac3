package experts

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
)

// Norm is an RMSNorm of a single row that has no dispatch (fusion rule `norm`). The products that read the
// norm compute it: they multiply their sums by the scale of the norm.
type Norm struct {
	X, Weight graph.ValueID // the row, and the weights of the norm
	Eps       float32
	// Weighted and Squares are set if the operator that computes X also computes the element-wise part of
	// the norm. Weighted is the row multiplied by the weights, in interleaved order. Squares has `Sums` sums
	// of squares of the row. Otherwise they are None.
	Weighted, Squares graph.ValueID
	Sums              int
}

// prepared reports whether another operator computes the element-wise part of the norm.
func (n *Norm) prepared() bool { return n.Squares != graph.None }

// row returns the row that a kernel reads instead of the norm.
func (n *Norm) row() graph.ValueID {
	if n.prepared() {
		return n.Weighted
	}
	return n.X
}

// beside returns the binding that a kernel needs, besides the row of x, to compute the norm.
func (n *Norm) beside() graph.Binding {
	if n.prepared() {
		return graph.Bind("squares", n.Squares)
	}
	return graph.Bind("norm", n.Weight)
}

// NormRows returns how many weight rows the kernel for one token processes, if it can compute a norm that the
// product reads. Otherwise it returns 0.
func (o *linear) NormRows(b *graph.Builder) int {
	with := *o
	with.norm = &Norm{Squares: graph.None}
	if o.eachSlot || !o.routes.Has(routeGEMV) || o.w.Cols%32 != 0 || b.RouteAsked(o.y) ||
		len(with.bindings(routeGEMV, &o.parts[0])) > int(b.Limits().MaxStorageBuffers) {
		return 0
	}
	return o.k * o.rows()
}

// Reads returns the input of the product.
func (o *linear) Reads() graph.ValueID { return o.x }

// ReadNorm returns a product that computes the norm of a single row itself. It returns nil if o already
// computes a norm.
func (o *linear) ReadNorm(b *graph.Builder, n *Norm) graph.Operator {
	if o.norm != nil {
		return nil
	}
	fused := *o
	fused.norm = n
	fused.makeKernels(b)
	return &fused
}

// takesNorm reports whether the kernel of a route computes the norm.
func (o *linear) takesNorm(route int) bool { return o.norm != nil && route == routeGEMV }

// readable returns a bit set of the routes whose kernels can read the inputs of the step: x, or the row from
// which they compute the norm x.
func (o *linear) readable(p *graph.Planner, routes uint64) uint64 {
	if o.norm == nil {
		return routes
	}
	for r := range o.routes {
		if o.takesNorm(r) != p.Deferred(o.x) || o.takesNorm(r) && p.Deferred(o.norm.row()) {
			routes &^= 1 << r
		}
	}
	return routes
}

// normError returns the error that computing the norm adds to the results, relative to the largest result in
// a row.
func (o *linear) normError() float64 {
	if o.norm == nil {
		return 0
	}
	return reference.SumRoundings(o.w.Cols) * reference.Rounding
}
