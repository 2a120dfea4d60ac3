package trace

// Phase is what a step ran for.
type Phase string

// The phases of steps.
const (
	Prefill Phase = "prefill" // takes in tokens of the prompt
	Decode  Phase = "decode"  // takes in one token and gives the next
	Execute Phase = "execute" // runs a graph that is no language model
)

// Timing is how closely a step was timed.
type Timing string

// The timing levels, from the least to the most detailed.
const (
	TimingOff      Timing = "off"      // wall time only
	TimingStep     Timing = "step"     // the GPU's time of the whole step
	TimingBlock    Timing = "block"    // the GPU's time of each block
	TimingDispatch Timing = "dispatch" // the GPU's time of each dispatch
)

// InDetail reports whether a level times more than the step as a whole.
func (t Timing) InDetail() bool { return t == TimingBlock || t == TimingDispatch }

// Role is what a value is to the graph.
type Role string

// The roles of values.
const (
	RoleInput        Role = "input"
	RoleOutput       Role = "output"
	RoleConstant     Role = "constant"
	RoleState        Role = "state"        // kept from step to step, such as a KV cache
	RoleIntermediate Role = "intermediate" // computed in a step and read in it
	RoleScratch      Role = "scratch"      // one operator's working memory
	RoleFused        Role = "fused"        // fused away: never in memory
	RoleSymInt       Role = "symint"
)

// AdapterType is the kind of a device. A driver may report kinds that are not listed here.
type AdapterType string

// The kinds of devices.
const (
	AdapterDiscrete   AdapterType = "discrete"
	AdapterIntegrated AdapterType = "integrated"
	AdapterVirtual    AdapterType = "virtual"
	AdapterCPU        AdapterType = "cpu" // software
	AdapterUnknown    AdapterType = "unknown"
)

// What the fields of these types may hold; Check refuses other values. AdapterType is not checked.
var (
	Phases       = []Phase{Prefill, Decode, Execute}
	TimingLevels = []Timing{TimingOff, TimingStep, TimingBlock, TimingDispatch}
	Roles        = []Role{
		RoleInput, RoleOutput, RoleConstant, RoleState, RoleIntermediate, RoleScratch, RoleFused, RoleSymInt,
	}
)
