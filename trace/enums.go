package trace

// Phase is the purpose of a step.
type Phase string

// The phases of steps.
const (
	Prefill Phase = "prefill" // processes tokens of the prompt
	Decode  Phase = "decode"  // processes one token and computes the next
	Execute Phase = "execute" // runs a graph that is not a language model
)

// Timing is the level of detail at which a step is timed.
type Timing string

// The timing levels, from the least to the most detailed.
const (
	TimingOff      Timing = "off"      // wall time only
	TimingStep     Timing = "step"     // GPU time of the whole step
	TimingBlock    Timing = "block"    // GPU time of each block
	TimingDispatch Timing = "dispatch" // GPU time of each dispatch
)

// InDetail reports whether this level times blocks or dispatches, and not only the whole step.
func (t Timing) InDetail() bool { return t == TimingBlock || t == TimingDispatch }

// Role describes how the graph uses a value.
type Role string

// The roles of values.
const (
	RoleInput        Role = "input"
	RoleOutput       Role = "output"
	RoleConstant     Role = "constant"
	RoleState        Role = "state"        // kept between steps, such as a KV cache
	RoleIntermediate Role = "intermediate" // computed and read within one step
	RoleScratch      Role = "scratch"      // temporary memory of one operator
	RoleFused        Role = "fused"        // fused away: never computed and never in memory
	RoleSymInt       Role = "symint"
)

// AdapterType is the kind of a device. Drivers may report other kinds than those listed here.
type AdapterType string

// The kinds of devices.
const (
	AdapterDiscrete   AdapterType = "discrete"
	AdapterIntegrated AdapterType = "integrated"
	AdapterVirtual    AdapterType = "virtual"
	AdapterCPU        AdapterType = "cpu" // software, not a GPU
	AdapterUnknown    AdapterType = "unknown"
)

// Joined says how a row of another engine's profile was joined with an operator of the model.
type Joined string

// The ways of joining a row.
const (
	JoinedByTensor Joined = "tensor name"         // the profile's tensor names show layer and role
	JoinedByID     Joined = "operator id"         // the profile has the operator ids of the model
	JoinedByShape  Joined = "operation and shape" // no other operators do this operation at this shape
	JoinedInOrder  Joined = "order"               // the profile lists the operators in model order
	JoinedNot      Joined = "none"                // not joined: the profile names the operator
)

// These lists hold the allowed values of Phase, Timing, Joined and Role. Check rejects all other values.
// There is no such list for AdapterType, which may have any value.
var (
	Phases       = []Phase{Prefill, Decode, Execute}
	TimingLevels = []Timing{TimingOff, TimingStep, TimingBlock, TimingDispatch}
	Joins        = []Joined{JoinedByTensor, JoinedByID, JoinedByShape, JoinedInOrder, JoinedNot}
	Roles        = []Role{
		RoleInput, RoleOutput, RoleConstant, RoleState, RoleIntermediate, RoleScratch, RoleFused, RoleSymInt,
	}
)
