// Package trace defines gpuscope's data model: a recorded run as plain data. The file format gpuscope.trace/1
// (docs/reference/trace-format.md) is the JSON encoding of these types. Every screen and every command
// computes its output from these types. Screens and commands therefore treat a live run and a file alike, and
// for a file they need no GPU.
//
// A Trace holds the graph, the plans of its dispatches and the steps. Package analyze computes results from
// a trace, and package table prints them.
//
// Recorder and StreamWriter accept a run record by record while the run is in progress. Recorder keeps the
// records in memory within a byte budget; StreamWriter writes them to a file. Read validates its input. No
// function of this package panics on a trace that passed Check.
//
// Times are integers in nanoseconds. A time that was not measured is absent, never 0 (see Time). Empty
// lists are absent too. The ids (ValueID, SymIntID, OpID, DispatchID, PlanID) are dense indices into the
// lists of Graph and Trace.
package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Schema names the format and version that this package writes. The package reads every minor version of
// the same major version.
const Schema = "gpuscope.trace/1.1"

// Each kind of id has its own type, so that the compiler rejects an id of the wrong kind.
type (
	ValueID    int32 // index into Graph.Values
	SymIntID   int32 // index into Graph.SymInts
	OpID       int32 // index into Graph.Ops
	DispatchID int32 // index into Graph.Dispatches
	PlanID     int32 // index into Trace.Plans
)

// Time is a duration or an instant in nanoseconds, or "not measured". The zero Time means not measured and
// is absent in JSON. Every field of type Time therefore has the omitzero tag.
type Time struct {
	// A long trace consists mostly of times, so each Time is one machine word. The word holds the
	// nanoseconds with the sign bit flipped, which maps math.MinInt64 to 0. The word 0 means "not
	// measured".
	word int64
}

// Measured returns a Time of ns nanoseconds. Measured(math.MinInt64) returns the Time "not measured".
func Measured(ns int64) Time { return Time{ns ^ math.MinInt64} }

// NS returns the time in nanoseconds and reports whether it was measured.
func (t Time) NS() (int64, bool) {
	if t.word == 0 {
		return 0, false
	}
	return t.word ^ math.MinInt64, true
}

// Equal reports whether t and u are the same time or are both not measured.
func (t Time) Equal(u Time) bool { return t == u }

// MarshalJSON writes the nanoseconds as a JSON integer.
func (t Time) MarshalJSON() ([]byte, error) {
	ns, _ := t.NS()
	return strconv.AppendInt(nil, ns, 10), nil
}

// UnmarshalJSON reads the nanoseconds from a JSON integer. A JSON null means not measured.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	ns, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || ns == math.MinInt64 {
		return fmt.Errorf("time: %s is not an integer number of nanoseconds", b)
	}
	*t = Measured(ns)
	return nil
}

// Tick is an instant of the device's own clock, in clock ticks. JSON stores a tick as a decimal string,
// because ticks exceed 2^53. A pair of ticks that are both zero means that nothing was recorded.
type Tick uint64

// MarshalJSON writes the tick as a decimal string.
func (t Tick) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte{'"'}, uint64(t), 10), '"'), nil
}

// UnmarshalJSON reads the tick from a decimal string.
func (t *Tick) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	n, wrong := strconv.ParseUint(text, 10, 64)
	if err != nil || wrong != nil {
		return fmt.Errorf("tick: %s is not a whole number below 2^64 in quotes", b)
	}
	*t = Tick(n)
	return nil
}

// Trace is one recorded run.
type Trace struct {
	Schema   string   `json:"schema"`
	Producer Producer `json:"producer"`
	Created  string   `json:"created"` // RFC 3339
	Command  []string `json:"command,omitempty"`
	// Static reports whether the engine launches the grid of the largest shape in every step (--static).
	Static bool   `json:"static,omitempty"`
	Host   Host   `json:"host"`
	Device Device `json:"device"`
	Clock  Clock  `json:"clock"`
	Model  Model  `json:"model"`
	// Opening lists, in order, the phases of opening the model, which precede the first step.
	Opening  []Opening `json:"opening,omitempty"`
	Graph    Graph     `json:"graph"`
	Forecast *Forecast `json:"forecast,omitempty"`
	Plans    []Plan    `json:"plans,omitempty"`
	Steps    []Step    `json:"steps,omitempty"`
	Observer *Observer `json:"observer,omitempty"`
	Trials   []Trial   `json:"trials,omitempty"`
	Events   []Event   `json:"events,omitempty"`
	// DroppedSteps is the number of oldest steps that were dropped to stay within the recorder's byte
	// budget.
	DroppedSteps int `json:"dropped_steps,omitempty"`

	Unknown *Unknown `json:"-"` // fields from a later minor version, except those of plans and steps
}

// Producer is the program that wrote the trace.
type Producer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Host is the machine that ran the model.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

// Device is the GPU that ran the model, or the software that emulated a GPU (AdapterCPU).
type Device struct {
	Name        string            `json:"name"`
	Backend     string            `json:"backend"`
	Driver      string            `json:"driver,omitempty"`
	AdapterType AdapterType       `json:"adapter_type"`
	Limits      map[string]uint64 `json:"limits,omitempty"`
	Ceilings    *Ceilings         `json:"ceilings,omitempty"`
}

// Software reports whether the device is software and not a GPU. Times of a software device can only be
// compared with other times of the same device.
func (d *Device) Software() bool { return d.AdapterType == AdapterCPU }

// NoDevice is the device name in a trace whose steps were planned but not run.
const NoDevice = "none"

// None reports whether the trace was planned without a device. Such steps have dispatches but no times.
func (d *Device) None() bool { return d.Name == NoDevice }

// TimingNS returns the overhead of timing one dispatch, in nanoseconds: the time of an empty pass with
// timestamps minus the time of an empty dispatch. The overhead is modelled. TimingNS returns 0 if
// either of the two times was not measured.
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

// Ceilings are the measured performance limits of the device. Each limit is the median of N runs.
type Ceilings struct {
	CopyBytesPerS  []CopyRate `json:"copy_bytes_per_s,omitempty"`
	FlopsPerS      float64    `json:"flops_per_s,omitempty"`
	DispatchNS     Time       `json:"dispatch_ns,omitzero"`
	TimedPassNS    Time       `json:"timed_pass_ns,omitzero"`
	FillWorkgroups int        `json:"fill_workgroups,omitempty"`
	N              int        `json:"n"`
}

// CopyRate is the copy bandwidth at one working-set size, in bytes per second.
type CopyRate struct {
	Bytes int64   `json:"bytes"`
	PerS  float64 `json:"per_s"`
}

// ClockMoved is the largest relative change of the GPU's clock at which times are still compared. The
// canary kernel measures the clock. A step whose clock is slower by more than ClockMoved is marked cold.
const ClockMoved = 0.03

// Clock converts GPU ticks to nanoseconds on the host's time axis. NSPerTick and OffsetNS are absent until
// they are calibrated. An uncalibrated trace has no GPU times, only raw ticks.
type Clock struct {
	NSPerTick float64 `json:"ns_per_tick,omitempty"`
	OffsetNS  Time    `json:"offset_ns,omitzero"`
	ErrorNS   Time    `json:"error_ns,omitzero"`
	QuantumNS float64 `json:"quantum_ns,omitempty"`
	Samples   int     `json:"samples,omitempty"`
	// CanaryNS is the time of a fixed kernel, the canary, on the warm device. Step.Canary is a speed
	// relative to CanaryNS.
	CanaryNS Time `json:"canary_ns,omitzero"`
}

// Opening is one phase of opening a model and its duration.
type Opening struct {
	Phase string `json:"phase"` // load, device, build, prepack, upload, compile
	NS    Time   `json:"ns,omitzero"`
}

// Model describes the model that was run.
type Model struct {
	Name         string `json:"name"`
	Architecture string `json:"architecture,omitempty"`
	Source       string `json:"source,omitempty"`
	Parameters   int64  `json:"parameters,omitempty"`
	Quantization string `json:"quantization,omitempty"`
	// Quantized describes the accuracy lost by quantizing at load. It is nil if no weights were quantized.
	Quantized *Quantized     `json:"quantized,omitempty"`
	Layers    int            `json:"layers,omitempty"`
	Dims      map[string]int `json:"dims,omitempty"`
}

// Quantized describes the accuracy lost when weights were quantized at load. The errors compare the
// quantized weights with the weights in the file.
type Quantized struct {
	Format    string   `json:"format"`     // weight format after quantization
	GroupSize int      `json:"group_size"` // number of columns that share a scale
	From      []string `json:"from"`       // weight types in the file
	Matrices  int      `json:"matrices"`   // number of quantized matrices

	// The errors cover the weights of all quantized matrices.
	SNRdB  Number `json:"snr_db"`
	MSE    Number `json:"mse"`
	MaxAbs Number `json:"max_abs"`

	Worst      string `json:"worst"` // name of the matrix with the lowest SNR
	WorstSNRdB Number `json:"worst_snr_db"`
}

// Graph is the dynamic-shape graph. The same graph ran in every step.
type Graph struct {
	Values     []Value    `json:"values,omitempty"`
	SymInts    []SymInt   `json:"symints,omitempty"`
	Ops        []Op       `json:"ops,omitempty"`
	Kernels    []Kernel   `json:"kernels,omitempty"`
	Dispatches []Dispatch `json:"dispatches,omitempty"`
}

// Value is a tensor, a SymInt or a scratch buffer of the graph.
type Value struct {
	ID      ValueID  `json:"id"`
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`            // tensor or symint
	DType   string   `json:"dtype,omitempty"` // f32, i32, u32 or q4
	MaxDims []int    `json:"max_dims,omitempty"`
	Bytes   int64    `json:"bytes,omitempty"`
	Role    Role     `json:"role"`
	Slot    *int     `json:"slot,omitempty"`
	AliasOf *ValueID `json:"alias_of,omitempty"`
	// Matrix is the logical shape of the weights if the value is a constant in a weight format.
	Matrix   *Matrix `json:"matrix,omitempty"`
	SourceID *int    `json:"source_id,omitempty"`
}

// Matrix is the format and the logical shape of a weight matrix that a constant stores.
type Matrix struct {
	Format string `json:"format"` // format such as q4_k; also the suffix of the operator kinds that read it
	Rows   int    `json:"rows"`
	Cols   int    `json:"cols"`
}

// SymInt is an integer that is known only at run time, and its range.
type SymInt struct {
	ID    SymIntID `json:"id"`
	Value ValueID  `json:"value"`
	Name  string   `json:"name"`
	Min   int64    `json:"min"`
	Max   int64    `json:"max"`
}

// Op is an operator of the graph.
type Op struct {
	ID      OpID      `json:"id"`
	Name    string    `json:"name"` // name within the model: "attn.q"
	Kind    string    `json:"kind"` // what the operator computes: "linear_q4gsw"
	Inputs  []ValueID `json:"inputs,omitempty"`
	Outputs []ValueID `json:"outputs,omitempty"`
	// Makes holds outputs of earlier operators that this operator computes itself if the earlier operators
	// defer them. To defer a value means to leave its computation to its readers.
	Makes    []ValueID      `json:"makes,omitempty"`
	State    []ValueID      `json:"state,omitempty"`
	Attrs    map[string]any `json:"attrs,omitempty"`
	Layer    *int           `json:"layer,omitempty"`
	Block    string         `json:"block,omitempty"` // attn, mlp and so on
	Parts    []string       `json:"parts,omitempty"` // names of the original operators if this one is fused
	SourceID *int           `json:"source_id,omitempty"`
}

// ShortName returns the operator's name without its layer and block: "q" for "layers.3.attn.q".
// Corresponding operators of equal layers have the same short name.
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

// Place returns the operator's name within its layer, such as "attn.q". For an operator outside of the
// layers it returns the whole name.
func (o *Op) Place() string {
	switch {
	case o.Layer == nil:
		return o.Name
	case o.Block == "":
		return o.ShortName()
	}
	return o.Block + "." + o.ShortName()
}

// Named returns the name of a dispatch, given the name (or the short name) of its operator: "sdpa.split"
// for the operator "sdpa".
func (d *Dispatch) Named(op string) string {
	if d.Label == "" {
		return op
	}
	return op + "." + d.Label
}

// OwnKernel returns the name of the kernel in the graph that a kernel name refers to. An edited kernel is
// named after the kernel that it replaces, followed by "+" and the first digits of its source hash. Any
// other name is returned unchanged.
func OwnKernel(name string) string {
	own, _, _ := strings.Cut(name, "+")
	return own
}

// Kernel is one specialised shader.
type Kernel struct {
	Name          string `json:"name"`
	Constants     string `json:"constants,omitempty"` // constants of the specialization, as readable text
	WorkgroupSize [3]int `json:"workgroup_size"`
	SourceSHA256  string `json:"source_sha256"`
	// Of is the name of the kernel in the graph that this kernel replaces. It is set if the source was
	// edited.
	Of     string `json:"of,omitempty"`
	Source string `json:"source,omitempty"`
	// Filled and Taken are byte ranges [from, to) of Source that differ from the shader template as written.
	// Filled holds the text that constants filled in. Taken holds the included files and the conditional
	// branches selected by constants.
	Filled [][2]int `json:"filled,omitempty"`
	Taken  [][2]int `json:"taken,omitempty"`
	Params []Param  `json:"params,omitempty"`
}

// Param is one field of a kernel's params block. Offset is in bytes.
type Param struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // u32, i32 or f32
	Offset int    `json:"offset"`
}

// Dispatch is a named slot of an operator. A slot does the same work whichever kernel runs in it.
type Dispatch struct {
	ID DispatchID `json:"id"`
	Op OpID       `json:"op"`
	// Label is the name of the slot within its operator. It is "" if the operator has only one slot.
	Label   string   `json:"label"`
	Kernels []string `json:"kernels,omitempty"` // one kernel for each route
	// Bound holds, for each kernel, those values in Reads and Writes that the kernel binds.
	Bound         [][]ValueID `json:"bound,omitempty"`
	Reads         []ValueID   `json:"reads,omitempty"`
	Writes        []ValueID   `json:"writes,omitempty"`
	MaxWorkgroups [3]int      `json:"max_workgroups"`
}

// Plan describes how a dispatch is launched: its kernel, route, grid and parameters. A plan is recorded
// once and shared by all steps in which it is in use.
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
	Grid         *Grid      `json:"grid,omitempty"`   // how NeededGroups is computed
	Params       string     `json:"params,omitempty"` // params block as hex
	Bytes        int64      `json:"bytes"`            // bytes moved to and from device memory, modelled
	FLOPs        int64      `json:"flops"`            // floating-point operations, modelled

	Unknown *Unknown `json:"-"` // fields from a later minor version
}

// Grid explains a workgroup count: the count is the product of the Groups of all terms.
type Grid struct {
	Rule  string `json:"rule"` // linear, rows, tiles or grid_stride
	Terms []Term `json:"terms"`
}

// Term is one quantity of the live shape (Name, Value), and how many of its items one workgroup processes
// (Per).
type Term struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Times int64  `json:"times,omitempty"` // number of work items for each unit of Value; 0 means 1
	Per   int64  `json:"per"`
	Most  int64  `json:"most,omitempty"` // maximum number of groups; 0 means no maximum
}

// Groups returns the number of workgroups for the term: Value * Times / Per, rounded up, and at most Most.
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
	Tokens   []int  `json:"tokens,omitempty"` // input token ids
	Token    *int   `json:"token,omitempty"`  // output token id
	Text     string `json:"text,omitempty"`   // text of Token
	Timing   Timing `json:"timing"`
	Cold     bool   `json:"cold,omitempty"`
	// Pipelined reports whether the step was submitted before the result of the previous step was read
	// back.
	Pipelined bool             `json:"pipelined,omitempty"`
	SymInts   map[string]int64 `json:"symints,omitempty"` // value of every SymInt, by name
	Dims      []LiveDims       `json:"dims,omitempty"`    // live shapes that changed since the previous step
	// Levels holds the first dispatch of each level. A level is a run of dispatches between two barriers.
	// Levels is absent if neither the levels nor their waits changed since the previous step.
	Levels     []DispatchID   `json:"levels,omitempty"`
	Waits      []Wait         `json:"waits,omitempty"` // why the barriers between levels are needed
	Top        []Candidate    `json:"top,omitempty"`
	Sampling   map[string]any `json:"sampling,omitempty"`
	Resize     Resize         `json:"resize"`
	Dispatches []StepDispatch `json:"dispatches,omitempty"`
	Costs      []Cost         `json:"costs,omitempty"`  // measured after the step by skipping dispatches
	Whole      *Whole         `json:"whole,omitempty"`  // the step with nothing skipped, measured with Costs
	Blocks     []Block        `json:"blocks,omitempty"` // at timing level block: all dispatches, in groups
	CPU        CPU            `json:"cpu"`
	GPU        *GPU           `json:"gpu,omitempty"`
	Canary     float64        `json:"canary,omitempty"`
	Memory     Memory         `json:"memory"`

	Unknown *Unknown `json:"-"` // fields from a later minor version
}

// Cost is the time that an untimed step saves when some of its dispatches are skipped and its levels stay
// separated by barriers. NS is the trimmed mean of N differences, or their median on a software device.
// Q1NS and Q3NS are the quartiles of the differences. A cost may be 0 or negative.
type Cost struct {
	Name       string       `json:"name"` // readable name of the skipped dispatches
	Dispatches []DispatchID `json:"dispatches"`
	NS         int64        `json:"ns"`
	Q1NS       int64        `json:"q1_ns"`
	Q3NS       int64        `json:"q3_ns"`
	N          int          `json:"n"`
	// OffNS is the error (±) of NS, computed by OffBy. It is absent if N is less than FewestWithin.
	OffNS Time `json:"off_ns,omitzero"`
}

// Rounds describes the number of rounds of the costs in words: "30 rounds", or "29–30 rounds" if the costs
// differ.
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

// Whole is the duration of the untimed step with nothing skipped. NS is the median of N runs on the GPU's
// clock, and Q1NS and Q3NS are the quartiles. WallNS is the median wall time of runs that are submitted
// piece by piece like a normal step. WallNS lasts from the first command to the end of the wait for the
// GPU.
//
// Canary is the speed of the canary kernel between the rounds, relative to Clock.CanaryNS. Canary is a
// median, and CanaryQ1 and CanaryQ3 are its quartiles. The speed shows how far the GPU's clock moved while
// the costs were measured. Canary is 0 if the canary kernel did not run.
type Whole struct {
	NS   int64 `json:"ns"`
	Q1NS int64 `json:"q1_ns"`
	Q3NS int64 `json:"q3_ns"`
	N    int   `json:"n"`
	// OffNS and WallOff are the errors (±) of NS and WallNS. Both are computed like Cost.OffNS.
	OffNS    Time    `json:"off_ns,omitzero"`
	WallNS   Time    `json:"wall_ns,omitzero"`
	WallOff  Time    `json:"wall_off_ns,omitzero"`
	Canary   float64 `json:"canary,omitempty"`
	CanaryQ1 float64 `json:"canary_q1,omitempty"`
	CanaryQ3 float64 `json:"canary_q3,omitempty"`
}

// Wait is one data dependency that makes the barrier before a dispatch necessary. The dispatch begins a
// level. The barrier itself waits for all earlier dispatches.
type Wait struct {
	Dispatch DispatchID `json:"dispatch"`
	Value    ValueID    `json:"value"` // value that Dispatch or a later dispatch of its compute pass uses
	// Kind is raw, war or waw: read after write, write after read, or write after write.
	Kind string `json:"kind"`
	// For is the last earlier dispatch that used the memory of Value. The memory may have held another
	// value at that time.
	For DispatchID `json:"for"`
}

// LiveDims is the live shape of a value. Dims is nil if the step does not compute the value.
type LiveDims struct {
	Value ValueID `json:"value"`
	Dims  []int   `json:"dims,omitzero"`
}

// Candidate is a token that the model considered for the next position. JSON stores a number that is not
// finite as "NaN", "Infinity" or "-Infinity".
type Candidate struct {
	ID    int     `json:"id"`
	Text  string  `json:"text,omitempty"`
	Logit float64 `json:"logit"`
	P     float64 `json:"p,omitempty"`
}

// Resize is the shape propagation that ran before a step. It has no passes if no shape and no SymInt
// changed.
type Resize struct {
	Order  string `json:"order"` // topological or fixpoint
	NS     Time   `json:"ns,omitzero"`
	Passes []Pass `json:"passes,omitempty"`
}

// Pass is one sweep of the shape propagation. The topological order needs one pass. The fixpoint order
// repeats passes until no value is dirty.
type Pass struct {
	Index int       `json:"index"`
	Dirty []ValueID `json:"dirty,omitempty"`
	Hooks []Hook    `json:"hooks,omitempty"`
}

// Hook is one call of the function that plans an operator during shape propagation.
type Hook struct {
	Op       OpID         `json:"op"`
	Triggers []ValueID    `json:"triggers,omitempty"`
	NS       Time         `json:"ns,omitzero"`
	Noop     bool         `json:"noop,omitempty"`     // the operator was re-planned and nothing changed
	Glitch   bool         `json:"glitch,omitempty"`   // some inputs were already updated and others were not
	Deferred bool         `json:"deferred,omitempty"` // planning failed and was retried in the next pass
	Changed  []Change     `json:"changed,omitempty"`
	Plans    []PlanChange `json:"plans,omitempty"`
}

// Change is a value's live shape before and after a resize. A SymInt's value is stored as a list with one
// number. From or To is nil if the value is not computed at that time.
type Change struct {
	Value ValueID `json:"value"`
	From  []int   `json:"from,omitzero"`
	To    []int   `json:"to,omitzero"`
}

// PlanChange is the replacement of a dispatch's plan. From is absent if the dispatch did not run before. To
// is absent if the dispatch no longer runs.
type PlanChange struct {
	From *PlanID `json:"from,omitempty"`
	To   *PlanID `json:"to,omitempty"`
}

// StepDispatch is a dispatch that ran in a step. Step.Dispatches lists them in order of submission.
type StepDispatch struct {
	Plan    PlanID        `json:"plan"`
	StartNS Time          `json:"start_ns,omitzero"`
	GPUNS   Time          `json:"gpu_ns,omitzero"`
	Samples []int64       `json:"samples,omitempty"` // ns, from repeats in place; excludes GPUNS
	Raw     [2]Tick       `json:"raw,omitzero"`      // begin and end, in ticks
	Error   *NumericError `json:"gap,omitempty"`
}

// Block is a group of consecutive dispatches of a step that were timed together in one compute pass. A
// block is a part of a layer, or an operator outside of the layers.
type Block struct {
	Name       string  `json:"name"` // "layers.3.attn"
	Dispatches int     `json:"dispatches"`
	StartNS    Time    `json:"start_ns,omitzero"`
	GPUNS      Time    `json:"gpu_ns,omitzero"`
	Raw        [2]Tick `json:"raw,omitzero"` // begin and end, in ticks
}

// NumericError is the difference between a dispatch's output and a reference that was computed from the
// same inputs. It is therefore the error of the kernel alone. If a dispatch has several outputs, the error
// describes the output that uses the largest share of its tolerance. Tolerance and the fields after it are
// absent if no tolerance was known.
type NumericError struct {
	MaxAbs    Number `json:"max_abs"`
	MSE       Number `json:"mse"`
	SNRdB     Number `json:"snr_db"`
	Reference string `json:"reference"`

	Tolerance string   `json:"tolerance,omitempty"` // allowed error of an element, and the reason for it
	Share     Number   `json:"share,omitempty"`     // worst error / tolerance; wrong if over 1
	Value     *ValueID `json:"value,omitempty"`     // output that the error describes
	Element   int      `json:"element,omitempty"`   // index of the worst element in the value's live shape
	Got       Number   `json:"got,omitempty"`       // value of the worst element; Want is its reference
	Want      Number   `json:"want,omitempty"`
	Compared  int      `json:"compared,omitempty"` // number of compared elements
	Elements  int      `json:"elements,omitempty"` // number of all elements; some may be unsampled
	NotFinite int      `json:"not_finite,omitempty"`
	// Run is the error against a reference run of the whole prompt and output. It includes the errors
	// inherited from earlier dispatches.
	Run *Drift `json:"run,omitempty"`
}

// Over describes how far the worst element exceeds its tolerance. If the element is not finite, no ratio
// exists and Over shows the value and the reference.
func (g *NumericError) Over() string {
	if !g.Got.Finite() {
		return fmt.Sprintf("%v, reference %.6g", float64(g.Got), float64(g.Want))
	}
	return fmt.Sprintf("%.3g times its tolerance", float64(g.Share))
}

// Drift is the difference between an output and the same output of a reference run. It consists of the
// inherited error and the kernel's own error.
type Drift struct {
	MaxAbs Number `json:"max_abs"`
	MSE    Number `json:"mse"`
	SNRdB  Number `json:"snr_db"`
}

// Mode returns "pipelined" if the step was submitted before the previous step was read back, else
// "stepped".
func (s *Step) Mode() string {
	if s.Pipelined {
		return "pipelined"
	}
	return "stepped"
}

// CPU holds the host's time and API calls during a step.
type CPU struct {
	ResizeNS Time `json:"resize_ns,omitzero"`
	UploadNS Time `json:"upload_ns,omitzero"`
	EncodeNS Time `json:"encode_ns,omitzero"`
	SubmitNS Time `json:"submit_ns,omitzero"`
	WaitNS   Time `json:"wait_ns,omitzero"`
	SampleNS Time `json:"sample_ns,omitzero"`
	TotalNS  Time `json:"total_ns,omitzero"`
	// OverlappedNS is the time within the phases before WaitNS during which the GPU worked: the time between
	// a submit and the wait for that submit. Work that prepares the next step during this time counts for
	// this step.
	OverlappedNS Time `json:"overlapped_ns,omitzero"`
	// StartNS, SubmittedNS and DoneNS are instants on the time axis of GPU.StartNS: the start of the step,
	// its first submit, and the end of its last wait for the GPU.
	StartNS     Time `json:"start_ns,omitzero"`
	SubmittedNS Time `json:"submitted_ns,omitzero"`
	DoneNS      Time `json:"done_ns,omitzero"`

	Passes     int        `json:"passes"`
	Submits    int        `json:"submits"`
	Writes     int        `json:"writes"`
	WriteBytes int64      `json:"write_bytes"`
	BindGroups int        `json:"bind_groups"`
	Polls      int        `json:"polls"`
	GCs        int        `json:"gcs,omitempty"` // number of garbage collections that paused the step
	GCNS       Time       `json:"gc_ns,omitzero"`
	Compiled   []Compiled `json:"compiled,omitempty"`
}

// Compiled is a pipeline that was compiled during a step.
type Compiled struct {
	Kernel string `json:"kernel"`
	NS     Time   `json:"ns,omitzero"`
}

// GPU holds the times of a step on the GPU's clock. BusyNS is the sum over its dispatches. SpanNS is the
// time from the start of the first dispatch to the end of the last.
type GPU struct {
	StartNS Time `json:"start_ns,omitzero"`
	BusyNS  Time `json:"busy_ns,omitzero"`
	SpanNS  Time `json:"span_ns,omitzero"`
}

// Memory is the size of the allocated device memory, and how much of it the live shapes use.
type Memory struct {
	AllocatedBytes int64 `json:"allocated_bytes"`
	LiveBytes      int64 `json:"live_bytes"`
}

// Observer holds the overhead of timing: medians of N runs of one decode step at each of three timing
// levels. The runs alternate between the levels.
type Observer struct {
	Step      *int `json:"step,omitempty"`      // index of the repeated step
	UntimedNS Time `json:"untimed_ns,omitzero"` // wall time at timing level off
	TimedNS   Time `json:"timed_ns,omitzero"`   // wall time at timing level dispatch
	// SpanNS is the GPU span at timing level step. This level adds no overhead between dispatches.
	SpanNS Time `json:"span_ns,omitzero"`
	// BeforeNS is the time from the start of the step to its first GPU tick, at timing level step.
	BeforeNS Time `json:"before_ns,omitzero"`
	// UntimedOff and SpanOff are the errors (±) of UntimedNS and SpanNS, computed by OffBy. They are absent
	// if N is less than FewestWithin.
	UntimedOff Time `json:"untimed_off_ns,omitzero"`
	SpanOff    Time `json:"span_off_ns,omitzero"`
	N          int  `json:"n"`
}

// Event is something that happened at a step, described in words.
type Event struct {
	Step     int         `json:"step"`
	Dispatch *DispatchID `json:"dispatch,omitempty"`
	Kind     string      `json:"kind"`
	Text     string      `json:"text"`
}
