package graphtree

import (
	"fmt"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// GraphWeight is a quantity that rows can be marked by.
type GraphWeight struct {
	Column string // of the table, which has it in numbers
	Doc    string // in a word or two
	Of     func(*GraphNode) float64
}

// GraphWeights are those that there are.
var GraphWeights = []GraphWeight{
	{"us", "GPU time", func(n *GraphNode) float64 { return n.NS }},
	{"cost_us", "cost", func(n *GraphNode) float64 {
		if n.Cost == nil || !n.Cost.Significant() {
			return 0
		}
		return max(0, float64(n.Cost.NS))
	}},
	{"waste", "waste", func(n *GraphNode) float64 { return float64(n.Waste) }},
	{"gap_db", "gap", func(n *GraphNode) float64 { // the noise against the signal
		if !n.HasError || math.IsNaN(n.ErrorDB) {
			return 0
		}
		return math.Pow(10, -n.ErrorDB/20)
	}},
}

// MemoryOf says which memory a value has: "slot 3", "as value 12".
func MemoryOf(v *trace.Value) string {
	switch {
	case v.AliasOf != nil:
		return fmt.Sprintf("as value %d", *v.AliasOf)
	case v.Slot != nil && analyze.NotStored(v) == "":
		return fmt.Sprintf("slot %d", *v.Slot)
	}
	return ""
}
