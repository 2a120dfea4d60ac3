package tracetest

import "gpuscope/trace"

// Tiny returns a very small trace with an example of most records: a graph of one operator, a prefill of
// three tokens, and a decode step that was repeated three times.
func Tiny() *trace.Trace {
	at := func(ns int64) trace.Time { return trace.Measured(ns) }
	plan := func(id trace.PlanID) *trace.PlanID { return &id }
	token := 5
	return &trace.Trace{
		Schema:   trace.Schema,
		Producer: trace.Producer{Name: "gpuscope", Version: "0.1.0"},
		Created:  "2026-11-21T12:00:00Z",
		Command:  []string{"gpuscope", "run", "tiny.gguf"},
		Host:     trace.Host{OS: "linux", Arch: "amd64", CPUs: 2},
		Device: trace.Device{
			Name: "NVIDIA H200", Backend: "vulkan", AdapterType: trace.AdapterDiscrete,
			Ceilings: &trace.Ceilings{
				CopyBytesPerS: []trace.CopyRate{{Bytes: 1 << 30, PerS: 4.24e12}},
				DispatchNS:    at(1696),
				TimedPassNS:   at(4800), FillWorkgroups: 264, N: 20,
			},
		},
		Clock: trace.Clock{
			NSPerTick: 1, OffsetNS: at(-7000), ErrorNS: at(900), QuantumNS: 32,
			Samples: 200,
		},
		Model: trace.Model{
			Name: "tiny.gguf", Architecture: "llama", Layers: 1,
			Dims: map[string]int{"dim": 4},
		},
		Graph: trace.Graph{
			Values: []trace.Value{
				{
					ID: 0, Name: "x", Kind: "tensor", DType: "f32", MaxDims: []int{
						8,
						4,
					}, Bytes: 128,
					Role: trace.RoleInput, Slot: new(int),
				},
				{
					ID: 1, Name: "weight", Kind: "tensor", DType: "f32",
					MaxDims: []int{4}, Bytes: 16,
					Role: trace.RoleConstant,
				},
				{
					ID: 2, Name: "y", Kind: "tensor", DType: "f32", MaxDims: []int{
						8,
						4,
					}, Bytes: 128,
					Role: trace.RoleOutput,
				},
			},
			Ops: []trace.Op{{
				ID: 0, Name: "layers.0.attn.norm", Kind: "rms_norm",
				Inputs:  []trace.ValueID{0, 1},
				Outputs: []trace.ValueID{2},
				Attrs:   map[string]any{"eps": 1e-5}, Layer: new(int), Block: "attn",
			}},
			Kernels: []trace.Kernel{{
				Name: "rms_norm", WorkgroupSize: [3]int{64, 1, 1}, SourceSHA256: "6f0c…",
				Params: []trace.Param{{Name: "rows", Type: "u32"}},
			}},
			Dispatches: []trace.Dispatch{{
				ID: 0, Op: 0, Kernels: []string{"rms_norm"}, Reads: []trace.ValueID{0, 1},
				Writes: []trace.ValueID{2}, MaxWorkgroups: [3]int{8, 1, 1},
			}},
		},
		Plans: []trace.Plan{
			{
				ID: 0, Dispatch: 0, Kernel: "rms_norm", Workgroups: [3]int{3, 1, 1},
				NeededGrid:   [3]int{3, 1, 1},
				NeededGroups: 3, IdleLanes: 180, Params: "03000000", Bytes: 112, FLOPs: 60,
			},
			{
				ID: 1, Dispatch: 0, Kernel: "rms_norm", Workgroups: [3]int{1, 1, 1},
				NeededGrid:   [3]int{1, 1, 1},
				NeededGroups: 1, IdleLanes: 60, Params: "01000000", Bytes: 48, FLOPs: 20,
			},
		},
		Steps: []trace.Step{
			{
				Index: 0, Phase: trace.Prefill, Tokens: []int{
					1, 2,
					3,
				}, Timing: trace.TimingDispatch, Cold: true,
				Dims: []trace.LiveDims{{Value: 0, Dims: []int{3, 4}}, {
					Value: 2,
					Dims:  []int{3, 4},
				}},
				Levels: []trace.DispatchID{0},
				Resize: trace.Resize{
					Order: "topological", NS: at(2100),
					Passes: []trace.Pass{{Dirty: []trace.ValueID{0}, Hooks: []trace.Hook{{
						Op: 0, Triggers: []trace.ValueID{0}, NS: at(900),
						Changed: []trace.Change{{
							Value: 2, From: []int{8, 4},
							To: []int{3, 4},
						}},
						Plans: []trace.PlanChange{{To: plan(0)}},
					}}}},
				},
				Dispatches: []trace.StepDispatch{{
					Plan: 0, StartNS: at(52_000), GPUNS: at(14_112),
					Raw: [2]trace.Tick{59_000, 73_112},
				}},
				CPU: trace.CPU{
					ResizeNS: at(2100), EncodeNS: at(9000), SubmitNS: at(31_000),
					WaitNS:  at(48_000),
					TotalNS: at(18_500_000),
					Passes:  1, Submits: 1, Writes: 2, WriteBytes: 304, BindGroups: 1,
					Polls:    1,
					Compiled: []trace.Compiled{{Kernel: "rms_norm", NS: at(18_400_000)}},
				},
				GPU: &trace.GPU{
					StartNS: at(52_000), BusyNS: at(14_112),
					SpanNS: at(14_112),
				},
				Memory: trace.Memory{AllocatedBytes: 528, LiveBytes: 112},
			},
			{
				Index: 1, Phase: trace.Decode, Position: 3, Tokens: []int{4},
				Token: &token, Text: " the",
				Timing: trace.TimingDispatch,
				Dims: []trace.LiveDims{{Value: 0, Dims: []int{1, 4}}, {
					Value: 2,
					Dims:  []int{1, 4},
				}},
				Top: []trace.Candidate{{ID: 5, Logit: 11.25}, {ID: 7, Logit: 9.5}},
				Resize: trace.Resize{
					Order: "topological", NS: at(1200),
					Passes: []trace.Pass{{Dirty: []trace.ValueID{0}, Hooks: []trace.Hook{{
						Op: 0, Triggers: []trace.ValueID{0}, NS: at(700),
						Changed: []trace.Change{{
							Value: 2, From: []int{3, 4},
							To: []int{1, 4},
						}},
						Plans: []trace.PlanChange{{From: plan(0), To: plan(1)}},
					}}}},
				},
				Dispatches: []trace.StepDispatch{{
					Plan: 1, StartNS: at(18_602_000), GPUNS: at(10_912),
					Samples: []int64{10_880, 10_912, 10_848},
				}},
				CPU: trace.CPU{
					ResizeNS: at(1200), EncodeNS: at(4000), SubmitNS: at(9000),
					WaitNS:  at(24_000),
					TotalNS: at(41_000),
					Passes:  1, Submits: 1, Writes: 2, WriteBytes: 272, Polls: 1,
				},
				Costs: []trace.Cost{{
					Name: "norm", Dispatches: []trace.DispatchID{0}, NS: 3072,
					Q1NS: 2944, Q3NS: 3232, N: 30,
					OffNS: at(144),
				}},
				Whole: &trace.Whole{
					NS: 4864, Q1NS: 4800, Q3NS: 4992, N: 31, Canary: 0.99,
					CanaryQ1: 0.98, CanaryQ3: 1.01,
					OffNS: trace.Measured(1000),
				},
				GPU: &trace.GPU{
					StartNS: at(18_602_000), BusyNS: at(10_912),
					SpanNS: at(10_912),
				},
				Canary: 0.99,
				Memory: trace.Memory{AllocatedBytes: 528, LiveBytes: 48},
			},
		},
		Observer: &trace.Observer{
			UntimedNS: at(31_000), TimedNS: at(41_000), N: 8,
			UntimedOff: trace.Measured(1000),
		},
	}
}
