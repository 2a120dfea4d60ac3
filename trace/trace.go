// Package trace is the recorded run as plain data: gpuscope's data model and, written as JSON, its file
// format gpuscope.trace/1 (docs/reference/trace-format.md). Whatever a view or a command shows is computed
// from these types, so it works on a live run and on a file alike, without a GPU.
//
// Trace is the run: the graph, the plans its dispatches were given, and the steps. What a trace says is
// computed from it by package inspect, and shown by package table.
//
// Recorder and StreamWriter take a run as it comes, record by record: one in memory within a budget, the
// other to a file. Read checks what it reads, and nothing here panics on a trace that passed Check.
//
// Times are integers in nanoseconds. A time that was not measured is absent, never 0: see Time. An empty list
// is absent too. Ids (ValueID, SymIntID, OpID, DispatchID, PlanID) are dense indices into the lists of Graph
// and Trace.
package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Schema is the format and version that this package writes. It reads every minor version of the same major
// one.
const Schema = "gpuscope.trace/1.1"

// Distinct id types, so that one cannot be passed for another.
type (
	ValueID    int32 // index into Graph.Values
	SymIntID   int32 // index into Graph.SymInts
	OpID       int32 // index into Graph.Ops
	DispatchID int32 // index into Graph.Dispatches
	PlanID     int32 // index into Trace.Plans
)

// Time is a duration or an instant in nanoseconds that may not have been measured. The zero Time was not
// measured; in JSON it is absent (every field of this type carries omitzero).
type Time struct {
	// A long trace is made of times, so each is one word: nanoseconds with the bit turned round that makes
	// the least integer 0. That one stands for no time.
	word int64
}

// Measured is a time of ns nanoseconds. The least integer is none.
func Measured(ns int64) Time { return Time{ns ^ math.MinInt64} }

// NS is the time in nanoseconds, and whether it was measured.
func (t Time) NS() (int64, bool) {
	if t.word == 0 {
		return 0, false
	}
	return t.word ^ math.MinInt64, true
}

// Equal reports whether two times are both not measured, or measured and the same.
func (t Time) Equal(u Time) bool { return t == u }

// MarshalJSON writes the integer.
func (t Time) MarshalJSON() ([]byte, error) {
	ns, _ := t.NS()
	return strconv.AppendInt(nil, ns, 10), nil
}

// UnmarshalJSON reads an integer.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	ns, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || ns == math.MinInt64 {
		return fmt.Errorf("a time is an integer of nanoseconds, not %s", b)
	}
	*t = Measured(ns)
	return nil
}

// Tick is an instant of the device's own clock. In JSON it is a decimal string: it passes 2^53. A pair of
// zero ticks was not recorded.
type Tick uint64

// MarshalJSON writes the decimal string.
func (t Tick) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(t), 10), '"'), nil
}

// UnmarshalJSON reads a decimal string.
func (t *Tick) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	n, wrong := strconv.ParseUint(text, 10, 64)
	if err != nil || wrong != nil {
		return fmt.Errorf("a tick is a whole number below 2^64 in quotes, not %s", b)
	}
	*t = Tick(n)
	return nil
}

// Trace is one recorded run.
type Trace struct {
	Schema   string    `json:"schema"`
	Producer Producer  `json:"producer"`
	Created  string    `json:"created"` // RFC 3339
	Command  []string  `json:"command,omitempty"`
	Static   bool      `json:"static,omitempty"` // every grid is that of the largest shape
	Host     Host      `json:"host"`
	Device   Device    `json:"device"`
	Clock    Clock     `json:"clock"`
	Model    Model     `json:"model"`
	Opening  []Opening `json:"opening,omitempty"` // what there was to do before the first step, in its order
	Graph    Graph     `json:"graph"`
	Forecast *Forecast `json:"forecast,omitempty"`
	Plans    []Plan    `json:"plans,omitempty"`
	Steps    []Step    `json:"steps,omitempty"`
	Observer *Observer `json:"observer,omitempty"`
	Trials   []Trial   `json:"trials,omitempty"`
	Events   []Event   `json:"events,omitempty"`
	// DroppedSteps counts the oldest steps that the recorder's byte budget pushed out.
	DroppedSteps int `json:"dropped_steps,omitempty"`

	Unknown *Unknown `json:"-"` // fields of a later minor version, outside of plans and steps
}

// Producer is the program that wrote the trace.
type Producer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Host is the machine that ran it.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

// Device is the GPU, or the software that stood in for one (AdapterCPU).
type Device struct {
	Name        string            `json:"name"`
	Backend     string            `json:"backend"`
	Driver      string            `json:"driver,omitempty"`
	AdapterType AdapterType       `json:"adapter_type"`
	Limits      map[string]uint64 `json:"limits,omitempty"`
	Ceilings    *Ceilings         `json:"ceilings,omitempty"`
}

// Software reports that the device is no GPU: its times can be compared with each other and with nothing
// else.
func (d *Device) Software() bool { return d.AdapterType == AdapterCPU }

// NoDevice is the name of the device of steps that were planned and did not run.
const NoDevice = "none"

// None reports that there was no device: steps have dispatches and no times.
func (d *Device) None() bool { return d.Name == NoDevice }

// TimingNS is what timing adds to each dispatch: a timed empty pass against an empty dispatch. It is
// modelled, and 0 where one of them was not measured.
func (d *Device) TimingNS() float64 {
	if d.Ceilings == nil {
		return 0
	}
	pass, ok1 := d.Ceilings.TimedPassNS.NS()
	dispatch, ok2 := d.Ceilings.DispatchNS.NS()
	if !ok1 || !ok2 {
		return 0
	}
	return float64(max(0, pass-dispatch))
}

// Ceilings are what the device was measured to do, with n runs each.
type Ceilings struct {
	CopyBytesPerS  []CopyRate `json:"copy_bytes_per_s,omitempty"`
	FlopsPerS      float64    `json:"flops_per_s,omitempty"`
	DispatchNS     Time       `json:"dispatch_ns,omitzero"`
	TimedPassNS    Time       `json:"timed_pass_ns,omitzero"`
	FillWorkgroups int        `json:"fill_workgroups,omitempty"`
	N              int        `json:"n"`
}

// CopyRate is the copy bandwidth at a working-set size.
type CopyRate struct {
	Bytes int64   `json:"bytes"`
	PerS  float64 `json:"per_s"`
}

// ClockMoved is the change of the GPU's clock, by its canary, beyond which times are not compared: a step
// that is slower by so much is cold.
const ClockMoved = 0.03

// Clock relates GPU ticks to nanoseconds on the host's axis. NSPerTick and OffsetNS are absent until
// calibrated; then no gpu time is in the trace either, only raw ticks.
type Clock struct {
	NSPerTick float64 `json:"ns_per_tick,omitempty"`
	OffsetNS  Time    `json:"offset_ns,omitzero"`
	ErrorNS   Time    `json:"error_ns,omitzero"`
	QuantumNS float64 `json:"quantum_ns,omitempty"`
	Samples   int     `json:"samples,omitempty"`
	// CanaryNS is what a fixed kernel took on the warm device; Step.Canary is in proportion to it.
	CanaryNS Time `json:"canary_ns,omitzero"`
}

// Opening is a part of opening a model, and how long it took.
type Opening struct {
	Phase string `json:"phase"` // load, device, build, prepack, upload, compile
	NS    Time   `json:"ns,omitzero"`
}

// Model says what was run.
type Model struct {
	Name         string         `json:"name"`
	Architecture string         `json:"architecture,omitempty"`
	Source       string         `json:"source,omitempty"`
	Parameters   int64          `json:"parameters,omitempty"`
	Quantization string         `json:"quantization,omitempty"`
	Quantized    *Quantized     `json:"quantized,omitempty"` // what that cost, where it was done at load
	Layers       int            `json:"layers,omitempty"`
	Dims         map[string]int `json:"dims,omitempty"`
}

// Quantized is what it cost to quantise weights as they were loaded: their distance from the file's.
type Quantized struct {
	Format    string   `json:"format"`     // that they have now
	GroupSize int      `json:"group_size"` // columns that share a scale
	From      []string `json:"from"`       // the types that they have in the file
	Matrices  int      `json:"matrices"`   // that were quantised

	// Over the weights of all of them.
	SNRdB  Number `json:"snr_db"`
	MSE    Number `json:"mse"`
	MaxAbs Number `json:"max_abs"`

	Worst      string `json:"worst"` // the matrix that lost most
	WorstSNRdB Number `json:"worst_snr_db"`
}

// Graph is the one dynamic-shape graph that served every step.
type Graph struct {
	Values     []Value    `json:"values,omitempty"`
	SymInts    []SymInt   `json:"symints,omitempty"`
	Ops        []Op       `json:"ops,omitempty"`
	Kernels    []Kernel   `json:"kernels,omitempty"`
	Dispatches []Dispatch `json:"dispatches,omitempty"`
}

// Value is a tensor, a SymInt or a scratch buffer of the graph.
type Value struct {
	ID       ValueID  `json:"id"`
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`            // tensor, symint
	DType    string   `json:"dtype,omitempty"` // f32, i32, u32, q4
	MaxDims  []int    `json:"max_dims,omitempty"`
	Bytes    int64    `json:"bytes,omitempty"`
	Role     Role     `json:"role"`
	Slot     *int     `json:"slot,omitempty"`
	AliasOf  *ValueID `json:"alias_of,omitempty"`
	Matrix   *Matrix  `json:"matrix,omitempty"` // whose weights it has, where they are in a format
	SourceID *int     `json:"source_id,omitempty"`
}

// Matrix is what a constant in a format stands for: so many rows and columns of weights.
type Matrix struct {
	Format string `json:"format"` // q4_k: the end of the kinds that take it
	Rows   int    `json:"rows"`
	Cols   int    `json:"cols"`
}

// SymInt is an integer that is known only at run time, with its range.
type SymInt struct {
	ID    SymIntID `json:"id"`
	Value ValueID  `json:"value"`
	Name  string   `json:"name"`
	Min   int64    `json:"min"`
	Max   int64    `json:"max"`
}

// Op is an operator of the graph.
type Op struct {
	ID       OpID           `json:"id"`
	Name     string         `json:"name"` // where it stands: "attn.q"
	Kind     string         `json:"kind"` // what it does: "linear_q4gsw"
	Inputs   []ValueID      `json:"inputs,omitempty"`
	Outputs  []ValueID      `json:"outputs,omitempty"`
	Makes    []ValueID      `json:"makes,omitempty"` // outputs of others before it, where these leave them
	State    []ValueID      `json:"state,omitempty"`
	Attrs    map[string]any `json:"attrs,omitempty"`
	Layer    *int           `json:"layer,omitempty"`
	Block    string         `json:"block,omitempty"` // attn, mlp, ...
	Parts    []string       `json:"parts,omitempty"` // names of the operators it was made of, where fused
	SourceID *int           `json:"source_id,omitempty"`
}

// ShortName is an operator's name without the layer and block that it stands in: "q" of "layers.3.attn.q".
// Operators in the same place of equal layers have the same.
func (o *Op) ShortName() string {
	parts := strings.Split(o.Name, ".")
	from := 0
	for i := range parts[:len(parts)-1] {
		if parts[i] == o.Block || o.Layer != nil && parts[i] == strconv.Itoa(*o.Layer) {
			from = i + 1
		}
	}
	return strings.Join(parts[from:], ".")
}

// Place is an operator's name within its layer: "attn.q"; outside of the layers its whole name.
func (o *Op) Place() string {
	switch {
	case o.Layer == nil:
		return o.Name
	case o.Block == "":
		return o.ShortName()
	}
	return o.Block + "." + o.ShortName()
}

// Named is what the dispatch is called where its operator has a name, or part of one: "sdpa.split" of "sdpa".
func (d *Dispatch) Named(op string) string {
	if d.Label == "" {
		return op
	}
	return op + "." + d.Label
}

// OwnKernel is the kernel of the graph that a name stands for: itself, or in whose place another text runs,
// which has the beginning of its hash after a +.
func OwnKernel(name string) string {
	own, _, _ := strings.Cut(name, "+")
	return own
}

// Kernel is one specialised shader.
type Kernel struct {
	Name          string `json:"name"`
	Constants     string `json:"constants,omitempty"` // that it was specialised with, for people
	WorkgroupSize [3]int `json:"workgroup_size"`
	SourceSHA256  string `json:"source_sha256"`
	// Of is the kernel of the graph in whose place this one runs, whose text somebody changed.
	Of     string `json:"of,omitempty"`
	Source string `json:"source,omitempty"`
	// Filled and Taken are the ranges of bytes of Source, from and to, in which it is not its template as it
	// was written: what constants filled in, and what was taken in from other files, or left in, for them.
	Filled [][2]int `json:"filled,omitempty"`
	Taken  [][2]int `json:"taken,omitempty"`
	Params []Param  `json:"params,omitempty"`
}

// Param is a field of a kernel's params block, at a byte offset.
type Param struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // u32, i32, f32
	Offset int    `json:"offset"`
}

// Dispatch is a named slot of an operator: the same work whatever kernel does it.
type Dispatch struct {
	ID DispatchID `json:"id"`
	Op OpID       `json:"op"`
	// of the slot within its operator; "" where it has one slot
	Label         string      `json:"label"`
	Kernels       []string    `json:"kernels,omitempty"` // its routes
	Bound         [][]ValueID `json:"bound,omitempty"`   // what each of them is bound to, of the following
	Reads         []ValueID   `json:"reads,omitempty"`
	Writes        []ValueID   `json:"writes,omitempty"`
	MaxWorkgroups [3]int      `json:"max_workgroups"`
}

// Plan is what a dispatch was given from some step on: written once, shared by all steps in which it was in
// force.
type Plan struct {
	ID           PlanID     `json:"id"`
	Dispatch     DispatchID `json:"dispatch"`
	Kernel       string     `json:"kernel"`
	Route        string     `json:"route,omitempty"`
	Reason       string     `json:"reason,omitempty"`
	Workgroups   [3]int     `json:"workgroups"`
	NeededGrid   [3]int     `json:"needed_workgroups"`
	NeededGroups int64      `json:"needed_groups"`
	IdleLanes    int64      `json:"idle_lanes"`
	Grid         *Grid      `json:"grid,omitempty"`   // how NeededGroups came about
	Params       string     `json:"params,omitempty"` // hex
	Bytes        int64      `json:"bytes"`            // modelled
	FLOPs        int64      `json:"flops"`            // modelled

	Unknown *Unknown `json:"-"` // fields of a later minor version
}

// Grid is the arithmetic of a workgroup count: the product of the groups of its terms.
type Grid struct {
	Rule  string `json:"rule"` // linear, rows, tiles, grid_stride
	Terms []Term `json:"terms"`
}

// Term is a count of the live shape, and how much of it a workgroup takes.
type Term struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Times int64  `json:"times,omitempty"` // pieces of work that each of them makes; 0: one
	Per   int64  `json:"per"`
	Most  int64  `json:"most,omitempty"` // groups that there are at most; 0: as many as it takes
}

// Groups is how many workgroups a term asks for: value * times / per, rounded up, and at most so many.
func (t *Term) Groups() int64 {
	work := t.Value * max(1, t.Times)
	n := work / t.Per
	if work%t.Per > 0 {
		n++
	}
	if t.Most > 0 {
		n = min(n, t.Most)
	}
	return n
}

// Step is one call of the engine.
type Step struct {
	Index    int    `json:"index"`
	Phase    Phase  `json:"phase"`
	Position int    `json:"position"`
	Tokens   []int  `json:"tokens,omitempty"` // that went in
	Token    *int   `json:"token,omitempty"`  // that came out
	Text     string `json:"text,omitempty"`   // of Token
	Timing   Timing `json:"timing"`
	Cold     bool   `json:"cold,omitempty"`
	// Pipelined reports that the step was sent before the one before it was read.
	Pipelined bool             `json:"pipelined,omitempty"`
	SymInts   map[string]int64 `json:"symints,omitempty"` // all of them, by name
	Dims      []LiveDims       `json:"dims,omitempty"`    // that changed since the step before
	// first of each, where they differ from the step before
	Levels     []DispatchID   `json:"levels,omitempty"`
	Waits      []Wait         `json:"waits,omitempty"` // what the barriers between levels wait for
	Top        []Candidate    `json:"top,omitempty"`
	Sampling   map[string]any `json:"sampling,omitempty"`
	Resize     Resize         `json:"resize"`
	Dispatches []StepDispatch `json:"dispatches,omitempty"`
	Costs      []Cost         `json:"costs,omitempty"`  // measured after it, by leaving dispatches out
	Whole      *Whole         `json:"whole,omitempty"`  // the step in the rounds that Costs come from
	Blocks     []Block        `json:"blocks,omitempty"` // at timing level block: they cover Dispatches
	CPU        CPU            `json:"cpu"`
	GPU        *GPU           `json:"gpu,omitempty"`
	Canary     float64        `json:"canary,omitempty"`
	Memory     Memory         `json:"memory"`

	Unknown *Unknown `json:"-"` // fields of a later minor version
}

// Cost is what the untimed step takes less when some of its dispatches are left out, while its levels stay
// apart: the trimmed mean of N differences, on a software device their median, and their quartiles. It may be
// 0 or negative.
type Cost struct {
	Name       string       `json:"name"` // of what was left out, for people
	Dispatches []DispatchID `json:"dispatches"`
	NS         int64        `json:"ns"`
	Q1NS       int64        `json:"q1_ns"`
	Q3NS       int64        `json:"q3_ns"`
	N          int          `json:"n"`
	// OffNS is what NS may be off by, as OffBy has it; not known of few rounds.
	OffNS Time `json:"off_ns,omitzero"`
}

// Rounds says in words how often parts were left out: "30 rounds", "29–30 rounds" where they differ.
func Rounds(costs []Cost) string {
	least, most := math.MaxInt, 0
	for i := range costs {
		least, most = min(least, costs[i].N), max(most, costs[i].N)
	}
	switch {
	case least < most:
		return fmt.Sprintf("%d–%d rounds", least, most)
	case most == 1:
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", most)
}

// Whole is what the step took with nothing left out, untimed, on the GPU's clock: the median of N runs, and
// their quartiles. WallNS is the median wall time of runs that are submitted as a step is, piece by piece,
// from the first command to the end of the wait.
// Canary is the speed of the canary kernel between the rounds, in proportion to Clock.CanaryNS, as a median
// with quartiles: how far the clock moved while costs were measured. It is 0 where there is no canary.
type Whole struct {
	NS       int64   `json:"ns"`
	Q1NS     int64   `json:"q1_ns"`
	Q3NS     int64   `json:"q3_ns"`
	N        int     `json:"n"`
	OffNS    Time    `json:"off_ns,omitzero"` // as that of a cost, of NS and of WallNS
	WallNS   Time    `json:"wall_ns,omitzero"`
	WallOff  Time    `json:"wall_off_ns,omitzero"`
	Canary   float64 `json:"canary,omitempty"`
	CanaryQ1 float64 `json:"canary_q1,omitempty"`
	CanaryQ3 float64 `json:"canary_q3,omitempty"`
}

// Wait is what the barrier before a dispatch waits for; the dispatch begins a level. A barrier waits for
// everything before it; these are the uses that made it necessary.
type Wait struct {
	Dispatch DispatchID `json:"dispatch"`
	Value    ValueID    `json:"value"` // that the dispatch uses
	Kind     string     `json:"kind"`  // raw, war, waw: read after write, ...
	For      DispatchID `json:"for"`   // used the value, or another that had its slot before, last
}

// LiveDims are the live dims of a value; nil where the step does not compute it.
type LiveDims struct {
	Value ValueID `json:"value"`
	Dims  []int   `json:"dims,omitzero"`
}

// Candidate is a token the model considered. In JSON a number that is not finite is "NaN", "Infinity" or
// "-Infinity".
type Candidate struct {
	ID    int     `json:"id"`
	Text  string  `json:"text,omitempty"`
	Logit float64 `json:"logit"`
	P     float64 `json:"p,omitempty"`
}

// Resize is the propagation that preceded a step. A step whose shapes and SymInts kept has no passes.
type Resize struct {
	Order  string `json:"order"` // topological, fixpoint
	NS     Time   `json:"ns,omitzero"`
	Passes []Pass `json:"passes,omitempty"`
}

// Pass is one sweep: one for the topological order, as many as it took for the fixpoint.
type Pass struct {
	Index int       `json:"index"`
	Dirty []ValueID `json:"dirty,omitempty"`
	Hooks []Hook    `json:"hooks,omitempty"`
}

// Hook is one run of an operator's plan.
type Hook struct {
	Op       OpID         `json:"op"`
	Triggers []ValueID    `json:"triggers,omitempty"`
	NS       Time         `json:"ns,omitzero"`
	Noop     bool         `json:"noop,omitempty"`     // it ran and nothing changed
	Glitch   bool         `json:"glitch,omitempty"`   // it saw operands of two moments
	Deferred bool         `json:"deferred,omitempty"` // it refused, and was tried again
	Changed  []Change     `json:"changed,omitempty"`
	Plans    []PlanChange `json:"plans,omitempty"`
}

// Change is a value's live dims, or a SymInt's value as a list of one, before and after; nil where the value
// is not computed.
type Change struct {
	Value ValueID `json:"value"`
	From  []int   `json:"from,omitzero"`
	To    []int   `json:"to,omitzero"`
}

// PlanChange is a dispatch that got another plan. From is absent where the dispatch did not run before, To
// where it runs no more.
type PlanChange struct {
	From *PlanID `json:"from,omitempty"`
	To   *PlanID `json:"to,omitempty"`
}

// StepDispatch is a dispatch that ran in a step, in order of submission.
type StepDispatch struct {
	Plan    PlanID        `json:"plan"`
	StartNS Time          `json:"start_ns,omitzero"`
	GPUNS   Time          `json:"gpu_ns,omitzero"`
	Samples []int64       `json:"samples,omitempty"` // ns, of repeats in place; GPUNS is not among them
	Raw     [2]Tick       `json:"raw,omitzero"`      // begin and end
	Error   *NumericError `json:"gap,omitempty"`
}

// Block is a run of a step's dispatches, in order of submission, that one pass timed: a part of a layer, or
// an operator that stands outside of them.
type Block struct {
	Name       string  `json:"name"` // "layers.3.attn"
	Dispatches int     `json:"dispatches"`
	StartNS    Time    `json:"start_ns,omitzero"`
	GPUNS      Time    `json:"gpu_ns,omitzero"`
	Raw        [2]Tick `json:"raw,omitzero"` // begin and end
}

// NumericError is the distance of a dispatch's outputs from a reference that was computed from the same
// inputs: the kernel's own error. Of several outputs it is of the one that takes the largest share of its
// tolerance. What is of the tolerance and after it is absent where none was known.
type NumericError struct {
	MaxAbs    Number `json:"max_abs"`
	MSE       Number `json:"mse"`
	SNRdB     Number `json:"snr_db"`
	Reference string `json:"reference"`

	Tolerance string   `json:"tolerance,omitempty"` // how far the elements may be off, and why
	Share     Number   `json:"share,omitempty"`     // of it, that the farthest element takes: over 1 is wrong
	Value     *ValueID `json:"value,omitempty"`     // that it is of
	Element   int      `json:"element,omitempty"`   // the farthest, in the value's live dims
	Got       Number   `json:"got,omitempty"`       // there
	Want      Number   `json:"want,omitempty"`
	Compared  int      `json:"compared,omitempty"` // elements
	Elements  int      `json:"elements,omitempty"` // that there are: more where samples were taken
	NotFinite int      `json:"not_finite,omitempty"`
	Run       *Drift   `json:"run,omitempty"` // the distance from a reference that computed the whole text
}

// Over says how far over its tolerance the farthest element is: of one that is not finite there are no times.
func (g *NumericError) Over() string {
	if !g.Got.Finite() {
		return fmt.Sprintf("%v, reference %.6g", float64(g.Got), float64(g.Want))
	}
	return fmt.Sprintf("%.3g times its tolerance", float64(g.Share))
}

// Drift is the distance of an output from that of a reference run: the error inherited and the kernel's own.
type Drift struct {
	MaxAbs Number `json:"max_abs"`
	MSE    Number `json:"mse"`
	SNRdB  Number `json:"snr_db"`
}

// Mode is how the step followed the one before it, in words: stepped or pipelined.
func (s *Step) Mode() string {
	if s.Pipelined {
		return "pipelined"
	}
	return "stepped"
}

// CPU is where the host's time and calls of a step went.
type CPU struct {
	ResizeNS Time `json:"resize_ns,omitzero"`
	UploadNS Time `json:"upload_ns,omitzero"`
	EncodeNS Time `json:"encode_ns,omitzero"`
	SubmitNS Time `json:"submit_ns,omitzero"`
	WaitNS   Time `json:"wait_ns,omitzero"`
	SampleNS Time `json:"sample_ns,omitzero"`
	TotalNS  Time `json:"total_ns,omitzero"`
	// OverlappedNS is the part of all before WaitNS that lay between a submit and the wait for it. What was
	// prepared of the next step then is this step's.
	OverlappedNS Time `json:"overlapped_ns,omitzero"`
	// Instants on the axis of GPU.StartNS: of the step's begin, of its first submit, and of the end of the
	// last wait for the GPU.
	StartNS     Time `json:"start_ns,omitzero"`
	SubmittedNS Time `json:"submitted_ns,omitzero"`
	DoneNS      Time `json:"done_ns,omitzero"`

	Passes     int        `json:"passes"`
	Submits    int        `json:"submits"`
	Writes     int        `json:"writes"`
	WriteBytes int64      `json:"write_bytes"`
	BindGroups int        `json:"bind_groups"`
	Polls      int        `json:"polls"`
	GCs        int        `json:"gcs,omitempty"` // that paused it
	GCNS       Time       `json:"gc_ns,omitzero"`
	Compiled   []Compiled `json:"compiled,omitempty"`
}

// Compiled is a pipeline that was compiled in a step.
type Compiled struct {
	Kernel string `json:"kernel"`
	NS     Time   `json:"ns,omitzero"`
}

// GPU is a step on the GPU's clock: BusyNS the sum of its dispatches, SpanNS from first begin to last end.
type GPU struct {
	StartNS Time `json:"start_ns,omitzero"`
	BusyNS  Time `json:"busy_ns,omitzero"`
	SpanNS  Time `json:"span_ns,omitzero"`
}

// Memory is what is allocated on the device and how much of it the live shapes use.
type Memory struct {
	AllocatedBytes int64 `json:"allocated_bytes"`
	LiveBytes      int64 `json:"live_bytes"`
}

// Observer says what timing costs: medians of n runs of one decode step, at each of three timing levels in
// turns.
type Observer struct {
	Step      *int `json:"step,omitempty"`      // its index
	UntimedNS Time `json:"untimed_ns,omitzero"` // wall at level off
	TimedNS   Time `json:"timed_ns,omitzero"`   // wall at level dispatch
	SpanNS    Time `json:"span_ns,omitzero"`    // of the GPU at level step, which disturbs nothing
	BeforeNS  Time `json:"before_ns,omitzero"`  // there from the step's begin to its first tick
	// What UntimedNS and SpanNS may be off by, as OffBy has it; not known of few runs.
	UntimedOff Time `json:"untimed_off_ns,omitzero"`
	SpanOff    Time `json:"span_off_ns,omitzero"`
	N          int  `json:"n"`
}

// Event is something that happened at a step, said in words.
type Event struct {
	Step     int         `json:"step"`
	Dispatch *DispatchID `json:"dispatch,omitempty"`
	Kind     string      `json:"kind"`
	Text     string      `json:"text"`
}
