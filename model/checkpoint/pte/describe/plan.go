package describe

import (
	"fmt"
	"strconv"

	"gpuscope/trace/table"
)

// Plan is gpuscope's own plan for a method, as a counterpart of the exporter's memory plan.
type Plan struct {
	Device string `json:"device"` // the plan fits the limits of this device
	// Refused is the reason why gpuscope cannot run the method. All fields below are then empty.
	Refused    string `json:"refused,omitempty"`
	Operators  int    `json:"operators"`  // number of operators after fusion
	Dispatches int    `json:"dispatches"` // largest number of dispatches in a run
	// Bytes maps a role to the number of bytes of device memory for it. The roles are "constant", "state",
	// "input", "output", and "shared", which stands for the slots.
	Bytes map[string]int64 `json:"bytes"`
	// Layouts has an entry for each assignment of memory. The first fits every shape. The second, if any, is
	// used at small shapes.
	Layouts []Layout `json:"layouts"`
	// Fused lists the tensors of the delegate that need no memory, because fusion removed them.
	Fused []int `json:"fused_away"`
	// Own lists the tensors of the delegate that have a buffer of their own: inputs, outputs and mutable
	// buffers.
	Own []int `json:"own"`
}

// Layout is an assignment of memory to tensors.
type Layout struct {
	Slots []Slot `json:"slots"` // pieces of memory
}

// Slot is a piece of memory that tensors use one after the other.
type Slot struct {
	Bytes  int64 `json:"bytes"`  // size
	Values []int `json:"values"` // ids of the delegate's tensors that use the slot
	Others int   `json:"others"` // number of further tensors in the slot, which gpuscope added
}

func (l *Layout) bytes() (n int64) {
	for i := range l.Slots {
		n += l.Slots[i].Bytes
	}
	return n
}

// tables returns a table for each layout of the plan.
func (p *Plan) tables() (all []*table.Table) {
	if p == nil || p.Refused != "" {
		return nil
	}
	for i := range p.Layouts {
		all = append(all, list(p.title(i), index(p.Layouts[i].Slots),
			number("slot", "", func(r *indexed[Slot]) int64 { return int64(r.i) }),
			number("bytes", "B", func(r *indexed[Slot]) int64 { return r.row.Bytes }),
			column("values, in order of use",
				func(r *indexed[Slot]) string { return numbers(r.row.Values) }),
			number("other tensors", "", func(r *indexed[Slot]) int64 { return int64(r.row.Others) })))
	}
	return all
}

// title returns the title of the table of a layout.
func (p *Plan) title(layout int) string {
	l := &p.Layouts[layout]
	plans := fmt.Sprintf("gpuscope plans %s in %s", table.Memory(l.bytes()),
		table.Plural(len(l.Slots), "slot"))
	if layout > 0 {
		return plans + " for small shapes"
	}
	var total int64
	for _, n := range p.Bytes {
		total += n
	}
	text := fmt.Sprintf("%s (%s; %s with constants, mutable buffers, inputs and outputs)", plans, p.Device,
		table.Memory(total))
	if n := len(p.Fused); n > 0 {
		text += ". Fusion leaves " + table.Plural(n, "tensor") + " of the delegate without memory"
	}
	return text
}

// memory returns a map from the id of each tensor to a text that says where the plan stores the tensor. The
// map has no entries for constants.
func (p *Plan) memory() map[int]string {
	if p == nil || len(p.Layouts) == 0 {
		return nil
	}
	of := map[int]string{}
	for _, id := range p.Fused {
		of[id] = "fused away"
	}
	for _, id := range p.Own {
		of[id] = "its own"
	}
	for i := range p.Layouts[0].Slots {
		for _, id := range p.Layouts[0].Slots[i].Values {
			of[id] = "slot " + strconv.Itoa(i)
		}
	}
	return of
}
