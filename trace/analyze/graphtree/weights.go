package graphtree

import (
	"fmt"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// GraphWeight is a number of each node, such as its time, by which nodes can be highlighted.
type GraphWeight struct {
	Column string // name of the table column that shows the same number
	Doc    string // title in one or two words
	Of     func(*GraphNode) float64
}

// GraphWeights lists the numbers by which nodes can be highlighted.
var GraphWeights = []GraphWeight{
	{"sum_us", "GPU time", func(n *GraphNode) float64 { return n.NS }},
	{"cost_us", "cost", func(n *GraphNode) float64 {
		if n.Cost == nil || !n.Cost.Significant() {
			return 0
		}
		return max(0, float64(n.Cost.NS))
	}},
	{"waste", "waste", func(n *GraphNode) float64 { return float64(n.Waste) }},
	{"gap_db", "gap", func(n *GraphNode) float64 { // ratio of noise to signal, computed from the SNR
		if !n.HasError || math.IsNaN(n.ErrorDB) {
			return 0
		}
		return math.Pow(10, -n.ErrorDB/20)
	}},
}

// MemoryOf returns where a value is stored, such as "slot 3", or "as value 12" for an alias.
func MemoryOf(v *trace.Value) string {
	switch {
	case v.AliasOf != nil:
		return fmt.Sprintf("as value %d", *v.AliasOf)
	case v.Slot != nil && analyze.NotStored(v) == "":
		return fmt.Sprintf("slot %d", *v.Slot)
	}
	return ""
}
