package tracetest

import "gpuscope/trace"

// Mixture returns a trace with a router and a dispatch. The router has 4 experts, and each token uses 2 of
// them. In the dispatch, a tile has 4 rows and 3 workgroups. The trace has one step for each element of
// `choices`. A nil element means that the choices of the step were not recorded.
func Mixture(tokens int, choices ...[][2]int) *trace.Trace {
	layer := 3
	t := &trace.Trace{
		Schema: trace.Schema,
		Graph: trace.Graph{
			Values: []trace.Value{
				{
					ID: 0, Name: "experts", Kind: "tensor", Role: trace.RoleIntermediate,
					MaxDims: []int{1, tokens, 2},
				},
				{ID: 1, Name: "y", Kind: "tensor", Role: trace.RoleOutput},
			},
			Ops: []trace.Op{
				{
					ID: 0, Name: "layers.3.mlp.router", Kind: "router", Outputs: []trace.ValueID{0},
					Layer: &layer, Block: "mlp", Attrs: map[string]any{"experts": 4.0, "k": 2.0},
				},
				{
					ID: 1, Name: "layers.3.mlp.up", Kind: "linear_experts", Inputs: []trace.ValueID{0},
					Outputs: []trace.ValueID{1},
				},
			},
			Dispatches: []trace.Dispatch{{ID: 0, Op: 1}},
		},
		Plans: []trace.Plan{{
			Workgroups: [3]int{3, 9, 1}, NeededGrid: [3]int{3, 9, 1}, NeededGroups: 27,
			Experts: trace.ExpertTiles{Rows: 4, Groups: 3, Bytes: 100, Active: 4},
		}},
	}
	for i, pairs := range choices {
		s := trace.Step{
			Index: i, Phase: trace.Prefill, Timing: trace.TimingDispatch, Tokens: make([]int, tokens),
			Dispatches: []trace.StepDispatch{{GPUNS: trace.Measured(1000)}},
		}
		if pairs != nil {
			s.Experts = []trace.ExpertCounts{{Op: 0, Tokens: pairs}}
		}
		t.Steps = append(t.Steps, s)
	}
	if err := t.Check(); err != nil {
		panic(err)
	}
	return t
}
