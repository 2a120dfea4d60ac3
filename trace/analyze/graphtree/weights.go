package graphtree

import (
	"fmt"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// GraphWeight is a quantity by which nodes can be marked.
type GraphWeight struct {
	Column string // table column with the same quantity in numbers
	Doc    string // one or two words
	Of     func(*GraphNode) float64
}

// GraphWeights are all quantities by which nodes can be marked.
var GraphWeights = []GraphWeight{
	{"us", "GPU time", func(n *GraphNode) float64 { return n.NS }},
	{"cost_us", "cost", func(n *GraphNode) float64 {
		if n.Cost == nil || !n.Cost.Significant() {
			return 0
		}
		return max(0, float64(n.Cost.NS))
	}},
	{"waste", "waste", func(n *GraphNode) float64 { return float64(n.Waste) }},
	{"gap_db", "gap", func(n *GraphNode) float64 { // converts the SNR from dB to a ratio of noise to signal
		if !n.HasError || math.IsNaN(n.ErrorDB) {
			return 0
		}
		return math.Pow(10, -n.ErrorDB/20)
	}},
}

// MemoryOf returns where a value is stored: "slot 3", "as value 12".
func MemoryOf(v *trace.Value) string {
	switch {
	case v.AliasOf != nil:
		return fmt.Sprintf("as value %d", *v.AliasOf)
	case v.Slot != nil && analyze.NotStored(v) == "":
		return fmt.Sprintf("slot %d", *v.Slot)
	}
	return ""
}
