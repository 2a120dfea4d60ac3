// Package trace defines gpuscope's data model: a recorded run as plain data. The file format gpuscope.trace/1
// (docs/reference/trace-format.md) is the JSON encoding of these types. Every screen and every command
// computes its output from these types. Screens and commands therefore treat a live run and a file in the
// same way, and need no GPU to show a file.
//
// A Trace holds the graph, the plans of its dispatches and the steps. Package analyze computes results from
// a trace, and package table prints them.
//
// During a run, Recorder and StreamWriter accept one record after another. Recorder keeps the records in
// memory, up to a budget in bytes. StreamWriter writes them to a file. Read checks what it reads. No function
// of this package panics on a trace that passed Check.
//
// Times are integers in nanoseconds. A time that was not measured is absent, never 0 (see Time). Empty
// lists are absent too. Each id (ValueID, SymIntID, OpID, DispatchID, PlanID) is the index of an element in a
// list of Graph or Trace.
package trace

import (
	"fmt"
	"math"
	"strconv"

	"gpuscope/trace/internal/unknown"
)

// Schema is the name and the version of the format that this package writes. The package reads every minor
// version of the same major version.
const Schema = "gpuscope.trace/1.1"

// Ids of different things have different types, so that the compiler rejects an id of the wrong thing.
type (
	ValueID    int32 // index into Graph.Values
	SymIntID   int32 // index into Graph.SymInts
	OpID       int32 // index into Graph.Ops
	DispatchID int32 // index into Graph.Dispatches
	PlanID     int32 // index into Trace.Plans
)

// Time is a duration or an instant in nanoseconds, or it is "not measured". A Time that is not measured is
// the zero Time and is absent in JSON, so each field of type Time has the tag omitzero.
type Time struct {
	// The word holds the nanoseconds with the sign bit flipped. This maps math.MinInt64 to 0, and 0 means
	// "not measured". A Time is therefore only one machine word, which matters because most of a long trace
	// is times.
	word int64
}

// Measured returns the Time of ns nanoseconds. The exception is math.MinInt64, for which it returns the Time
// "not measured".
func Measured(ns int64) Time { return Time{ns ^ math.MinInt64} }

// NS returns the nanoseconds. The bool is false if the time was not measured.
func (t Time) NS() (int64, bool) {
	if t.word == 0 {
		return 0, false
	}
	return t.word ^ math.MinInt64, true
}

// Equal reports whether two times are the same. Two times that are not measured are equal too.
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

// Tick is an instant on the clock of the device, in ticks of this clock. JSON stores it as a decimal string
// because ticks can exceed 2^53. Ticks are recorded in pairs of begin and end. If both are zero, nothing
// was recorded.
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
		return fmt.Errorf("tick: %s is not a quoted whole number below 2^64", b)
	}
	*t = Tick(n)
	return nil
}

// Trace is one recorded run.
type Trace struct {
	Schema   string   `json:"schema"`
	Producer Producer `json:"producer"`
	Created  string   `json:"created"` // RFC 3339
	// Engine is the name of another engine if the trace is an imported profile of that engine. It is "" if
	// the producer itself ran the steps.
	Engine string `json:"engine,omitempty"`
	// Stated lists the times that an imported profile states for whole steps.
	Stated  []Stated `json:"stated,omitempty"`
	Command []string `json:"command,omitempty"`
	// Static is set if the engine launched the grid of the maximum shape in every step (--static).
	Static bool   `json:"static,omitempty"`
	Host   Host   `json:"host"`
	Device Device `json:"device"`
	Clock  Clock  `json:"clock"`
	Model  Model  `json:"model"`
	// Opening lists, in order, the phases of opening the model. The model is opened before the first step.
	Opening  []Opening `json:"opening,omitempty"`
	Graph    Graph     `json:"graph"`
	Forecast *Forecast `json:"forecast,omitempty"`
	Plans    []Plan    `json:"plans,omitempty"`
	Steps    []Step    `json:"steps,omitempty"`
	Observer *Observer `json:"observer,omitempty"`
	Trials   []Trial   `json:"trials,omitempty"`
	Events   []Event   `json:"events,omitempty"`
	// DroppedSteps is the number of steps at the beginning of the run that are not in the trace: the recorder
	// dropped them to stay within its memory budget, or the user recorded a range of steps.
	DroppedSteps int `json:"dropped_steps,omitempty"`
	// NoText is set if texts and token ids were removed (package redact). Token ids are then 0 or absent.
	NoText bool `json:"no_text,omitempty"`

	Unknown *Unknown `json:"-"` // unknown fields; plans and steps have their own Unknown
}

// Unknown holds the fields of a record that this version does not know, because a later minor version wrote
// them. When the trace is written, these fields are written too. *Unknown is nil if there are none.
type Unknown = unknown.Fields

// Producer is the program that wrote the trace.
type Producer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Stated is a time that the profile of another engine states for whole steps: the median of all steps of
// one phase. The profile does not say which of these steps are in the trace.
type Stated struct {
	Phase  Phase `json:"phase"`
	Tokens int   `json:"tokens"`           // tokens that each of these steps read
	WallNS Time  `json:"wall_ns,omitzero"` // wall time of a step
}

// StatedFor returns the time that the imported profile states for a step of the given phase.
func (t *Trace) StatedFor(phase Phase) (Stated, bool) {
	for _, s := range t.Stated {
		if s.Phase == phase {
			return s, true
		}
	}
	return Stated{}, false
}

// Host is the machine that ran the model.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

// ImportedDevice is the name of the device in a trace whose times come from the profile of another engine.
// The profile does not name the device.
const ImportedDevice = "imported"

// Device is what ran the model: a GPU, or software that emulates one (AdapterCPU).
type Device struct {
	Name        string            `json:"name"`
	Backend     string            `json:"backend"`
	Driver      string            `json:"driver,omitempty"`
	AdapterType AdapterType       `json:"adapter_type"`
	Limits      map[string]uint64 `json:"limits,omitempty"`
	Ceilings    *Ceilings         `json:"ceilings,omitempty"`
}

// Software reports whether the device is software that emulates a GPU. Times of such a device can be compared
// only with other times of the same device.
func (d *Device) Software() bool { return d.AdapterType == AdapterCPU }

// NoDevice is the name of the device in a trace of steps that were only planned and not run.
const NoDevice = "none"

// None reports whether the trace was made without a device, by planning. Its steps have dispatches but no
// times.
func (d *Device) None() bool { return d.Name == NoDevice }

// TimingNS returns the modelled overhead of timing one dispatch, in ns. This is the time of an empty pass
// with timestamps minus the time of an empty dispatch. TimingNS returns 0 if one of these times was not
// measured.
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

// Ceilings holds measured limits of the device's performance. Each of them is the median of N runs.
type Ceilings struct {
	CopyBytesPerS  []CopyRate `json:"copy_bytes_per_s,omitempty"`
	FlopsPerS      float64    `json:"flops_per_s,omitempty"`
	DispatchNS     Time       `json:"dispatch_ns,omitzero"`
	TimedPassNS    Time       `json:"timed_pass_ns,omitzero"`
	FillWorkgroups int        `json:"fill_workgroups,omitempty"`
	N              int        `json:"n"`
}

// CopyRate is the copy bandwidth in bytes per second for a working set of one size.
type CopyRate struct {
	Bytes int64   `json:"bytes"`
	PerS  float64 `json:"per_s"`
}

// ClockMoved is the largest relative change of the GPU clock at which times are still compared. The canary
// kernel measures the clock. A step whose clock was slower by more than this is marked cold.
const ClockMoved = 0.03

// Clock holds what is needed to convert GPU ticks to ns on the time axis of the host. Before the clock is
// calibrated, NSPerTick and OffsetNS are absent. A trace without calibration has raw ticks but no GPU times.
type Clock struct {
	NSPerTick float64 `json:"ns_per_tick,omitempty"`
	OffsetNS  Time    `json:"offset_ns,omitzero"`
	ErrorNS   Time    `json:"error_ns,omitzero"`
	QuantumNS float64 `json:"quantum_ns,omitempty"`
	Samples   int     `json:"samples,omitempty"`
	// CanaryNS is the time of the canary, a kernel that always does the same work, on the warm device.
	// Step.Canary is a speed relative to this time.
	CanaryNS Time `json:"canary_ns,omitzero"`
}

// Opening is one of the phases of opening a model, with the time that it took.
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
	// Quantized describes how much accuracy was lost when weights were quantized at load. It is nil if none
	// were quantized then.
	Quantized *Quantized     `json:"quantized,omitempty"`
	Layers    int            `json:"layers,omitempty"`
	Dims      map[string]int `json:"dims,omitempty"`
}

// Quantized describes how much accuracy was lost when weights were quantized at load. The errors are
// differences between the quantized weights and the weights in the file.
type Quantized struct {
	Format    string   `json:"format"`     // weight format after quantization
	GroupSize int      `json:"group_size"` // number of columns of a row that share one scale
	From      []string `json:"from"`       // types of the weights in the file
	Matrices  int      `json:"matrices"`   // number of matrices that were quantized

	// SNRdB, MSE and MaxAbs are the errors over the weights of all quantized matrices together.
	SNRdB  Number `json:"snr_db"`
	MSE    Number `json:"mse"`
	MaxAbs Number `json:"max_abs"`

	Worst      string `json:"worst"` // name of the matrix with the lowest signal-to-noise ratio
	WorstSNRdB Number `json:"worst_snr_db"`
}

// Plan says how a dispatch is launched: with which kernel, route, grid and params. A plan is recorded only
// once, and all steps in which it is in use refer to it.
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
	Bytes        int64      `json:"bytes"`            // modelled bytes moved to and from device memory
	FLOPs        int64      `json:"flops"`            // modelled floating-point operations
	// Experts is set if the work of the dispatch depends on the experts that a router chose.
	Experts ExpertTiles `json:"experts,omitzero"`

	Unknown *Unknown `json:"-"` // unknown fields, which a later minor version wrote
}

// Grid explains the number of workgroups. This number is the product of Term.Groups of all terms.
type Grid struct {
	Rule  string `json:"rule"` // linear, rows, tiles or grid_stride
	Terms []Term `json:"terms"`
}

// Term is one quantity on which the number of workgroups depends, such as the number of columns. Value is
// its value in the shape of the step. One workgroup processes Per work items.
type Term struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Times int64  `json:"times,omitempty"` // work items for each unit of Value; 0 means 1
	Per   int64  `json:"per"`
	Most  int64  `json:"most,omitempty"` // upper limit of Groups; 0 means none
}

// Groups returns the number of workgroups that the term needs: Value * Times / Per, rounded up. It is not
// larger than Most, unless Most is 0.
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

// ExpertTiles describes a dispatch in which each workgroup multiplies tokens by the weights of one expert.
// The tokens of an expert are divided into tiles. Plan.Workgroups is large enough for any choice of the
// router, and surplus workgroups exit at once.
type ExpertTiles struct {
	Rows   int   `json:"rows"`   // rows of a tile: each row is a token, multiplied by the same expert
	Groups int64 `json:"groups"` // number of workgroups of one tile
	Bytes  int64 `json:"bytes"`  // bytes of the weights of one expert
	// Active is the number of experts whose weights Plan.Bytes includes: the number that is expected if the
	// router chooses all experts equally often.
	Active int64 `json:"active"`
}

// ExpertCounts says how a router divided the tokens of a step among the experts.
type ExpertCounts struct {
	Op OpID `json:"op"` // the router
	// Tokens has a pair for each expert that was chosen: the expert's number, and how many tokens chose this
	// expert. The pairs are in ascending order of the expert's number.
	Tokens [][2]int `json:"tokens"`
}

// Step is one run of the graph by the engine.
type Step struct {
	Index    int    `json:"index"`
	Phase    Phase  `json:"phase"`
	Position int    `json:"position"`
	Tokens   []int  `json:"tokens,omitempty"` // input token ids
	Token    *int   `json:"token,omitempty"`  // output token id
	Text     string `json:"text,omitempty"`   // text of Token
	Timing   Timing `json:"timing"`
	Cold     bool   `json:"cold,omitempty"`
	// Pipelined is set if the step was submitted before the result of the previous step was read back.
	Pipelined bool             `json:"pipelined,omitempty"`
	SymInts   map[string]int64 `json:"symints,omitempty"` // value of every SymInt, by name
	Dims      []LiveDims       `json:"dims,omitempty"`    // shapes that differ from the previous step
	// Levels holds the first dispatch of each level. A level is a sequence of dispatches between two
	// barriers. Levels is absent if it and Waits are the same as in the previous step.
	Levels     []DispatchID   `json:"levels,omitempty"`
	Waits      []Wait         `json:"waits,omitempty"` // reasons for the barriers between levels
	Top        []Candidate    `json:"top,omitempty"`
	Sampling   map[string]any `json:"sampling,omitempty"`
	Resize     Resize         `json:"resize"`
	Experts    []ExpertCounts `json:"experts,omitempty"` // choices of the routers
	Dispatches []StepDispatch `json:"dispatches,omitempty"`
	Costs      []Cost         `json:"costs,omitempty"`  // measured after the step by skipping dispatches
	Whole      *Whole         `json:"whole,omitempty"`  // the whole step, measured together with Costs
	Blocks     []Block        `json:"blocks,omitempty"` // all dispatches in groups, at timing level block
	CPU        CPU            `json:"cpu"`
	GPU        *GPU           `json:"gpu,omitempty"`
	Canary     float64        `json:"canary,omitempty"`
	Memory     Memory         `json:"memory"`

	Unknown *Unknown `json:"-"` // unknown fields, which a later minor version wrote
}

// Cost is the time that a step saves if some of its dispatches are skipped. During the measurement, the step
// is not timed in detail, and its levels keep their barriers. NS is the trimmed mean of N differences, or
// their median on a software device. Q1NS and Q3NS are the quartiles of the differences. A cost can be 0 or
// negative.
type Cost struct {
	Name       string       `json:"name"` // name of the skipped dispatches, for users
	Dispatches []DispatchID `json:"dispatches"`
	NS         int64        `json:"ns"`
	Q1NS       int64        `json:"q1_ns"`
	Q3NS       int64        `json:"q3_ns"`
	N          int          `json:"n"`
	// OffNS is the error (±) of NS as OffBy computes it. It is absent if N is less than FewestWithin.
	OffNS Time `json:"off_ns,omitzero"`
}

// Rounds returns the number of rounds of the costs as text: "30 rounds", or "29–30 rounds" if not all costs
// have the same number.
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

// Whole holds times of the whole step, without skipped dispatches and without detailed timing.
//
// NS is the median of N runs on the clock of the GPU, and Q1NS and Q3NS are the quartiles. WallNS is the
// median wall time of runs that are submitted in pieces, as in a normal step. A wall time lasts from the
// first command until the wait for the GPU has ended.
//
// Canary is the speed of the canary kernel between the rounds, relative to Clock.CanaryNS. It is a median,
// and CanaryQ1 and CanaryQ3 are the quartiles. The speeds show how much the GPU clock changed while the costs
// were measured. Canary is 0 if the canary kernel did not run.
type Whole struct {
	NS   int64 `json:"ns"`
	Q1NS int64 `json:"q1_ns"`
	Q3NS int64 `json:"q3_ns"`
	N    int   `json:"n"`
	// OffNS and WallOff are the errors (±) of NS and of WallNS, computed as in Cost.OffNS.
	OffNS    Time    `json:"off_ns,omitzero"`
	WallNS   Time    `json:"wall_ns,omitzero"`
	WallOff  Time    `json:"wall_off_ns,omitzero"`
	Canary   float64 `json:"canary,omitempty"`
	CanaryQ1 float64 `json:"canary_q1,omitempty"`
	CanaryQ3 float64 `json:"canary_q3,omitempty"`
}

// Wait is a data dependency that makes a barrier before a dispatch necessary. The dispatch is the first of a
// level. The barrier waits for all earlier dispatches, not only for the one that Wait names.
type Wait struct {
	Dispatch DispatchID `json:"dispatch"`
	Value    ValueID    `json:"value"` // used by Dispatch, or by a later dispatch of the same compute pass
	// Kind is raw (read after write), war (write after read) or waw (write after write).
	Kind string `json:"kind"`
	// For is the last of the earlier dispatches that used the memory of Value. At that time, the memory may
	// have held another value.
	For DispatchID `json:"for"`
}

// LiveDims is the shape of a value in a step. Dims is nil if the step does not compute the value.
type LiveDims struct {
	Value ValueID `json:"value"`
	Dims  []int   `json:"dims,omitzero"`
}

// Candidate is a token that the model considered as the next token. In JSON, a number that is not finite is
// "NaN", "Infinity" or "-Infinity".
type Candidate struct {
	ID    int     `json:"id"`
	Text  string  `json:"text,omitempty"`
	Logit float64 `json:"logit"`
	P     float64 `json:"p,omitempty"`
}

// Resize is the shape propagation before a step. If no shape and no SymInt changed, it has no passes.
type Resize struct {
	Order  string `json:"order"` // topological or fixpoint
	NS     Time   `json:"ns,omitzero"`
	Passes []Pass `json:"passes,omitempty"`
}

// Pass is a pass of the shape propagation over the operators. In topological order there is only one. In
// fixpoint order, passes are repeated until no value is dirty.
type Pass struct {
	Index int       `json:"index"`
	Dirty []ValueID `json:"dirty,omitempty"`
	Hooks []Hook    `json:"hooks,omitempty"`
}

// Hook is one call of the function that plans an operator in a pass.
type Hook struct {
	Op       OpID         `json:"op"`
	Triggers []ValueID    `json:"triggers,omitempty"`
	NS       Time         `json:"ns,omitzero"`
	Noop     bool         `json:"noop,omitempty"`     // the operator was re-planned, but nothing changed
	Glitch   bool         `json:"glitch,omitempty"`   // only some of the inputs were up to date at the time
	Deferred bool         `json:"deferred,omitempty"` // planning failed, so the next pass repeated it
	Changed  []Change     `json:"changed,omitempty"`
	Plans    []PlanChange `json:"plans,omitempty"`
}

// Change is the shape of a value before (From) and after (To) a resize. For a SymInt, each of the two is a
// list with its value as the only element. From or To is nil if the value is not computed at that time.
type Change struct {
	Value ValueID `json:"value"`
	From  []int   `json:"from,omitzero"`
	To    []int   `json:"to,omitzero"`
}

// PlanChange is a change of the plan of a dispatch. From is absent if the dispatch did not run before, and To
// is absent if it does not run after the change. In the first step, From is the plan at the maximum shapes.
type PlanChange struct {
	From *PlanID `json:"from,omitempty"`
	To   *PlanID `json:"to,omitempty"`
}

// StepDispatch is a dispatch that ran in a step.
type StepDispatch struct {
	Plan    PlanID        `json:"plan"`
	StartNS Time          `json:"start_ns,omitzero"`
	GPUNS   Time          `json:"gpu_ns,omitzero"`
	Samples []int64       `json:"samples,omitempty"` // GPU times of repeats in place, in ns; without GPUNS
	Raw     [2]Tick       `json:"raw,omitzero"`      // begin and end, in ticks
	Error   *NumericError `json:"gap,omitempty"`
}

// Block is a series of dispatches of a step that were timed together, in one compute pass. They are a part of
// one layer, or one operator that is in no layer.
type Block struct {
	Name       string  `json:"name"` // "layers.3.attn"
	Dispatches int     `json:"dispatches"`
	StartNS    Time    `json:"start_ns,omitzero"`
	GPUNS      Time    `json:"gpu_ns,omitzero"`
	Raw        [2]Tick `json:"raw,omitzero"` // begin and end, in ticks
}

// NumericError is the difference between an output of a dispatch and a reference. The reference is computed
// from the same inputs, so the error is that of the kernel alone. Of several outputs, the one with the
// largest Share is described. Tolerance and the fields after it are absent if no tolerance is known.
type NumericError struct {
	MaxAbs    Number `json:"max_abs"`
	MSE       Number `json:"mse"`
	SNRdB     Number `json:"snr_db"`
	Reference string `json:"reference"`

	Tolerance string   `json:"tolerance,omitempty"` // error that an element may have, and why
	Share     Number   `json:"share,omitempty"`     // largest error / tolerance; above 1 the output is wrong
	Value     *ValueID `json:"value,omitempty"`     // output that the error describes
	Element   int      `json:"element,omitempty"`   // index of the element with the largest error
	Got       Number   `json:"got,omitempty"`       // value of that element; Want: its reference
	Want      Number   `json:"want,omitempty"`
	Compared  int      `json:"compared,omitempty"` // number of elements that were compared
	Elements  int      `json:"elements,omitempty"` // number of all elements, compared or not
	NotFinite int      `json:"not_finite,omitempty"`
	// Run is the error compared with a reference run of the whole prompt and output. Errors inherited from
	// earlier dispatches are included.
	Run *Drift `json:"run,omitempty"`
}

// Over says by how much the largest error exceeds the tolerance. If the element is not finite, there is no
// such ratio, and Over returns the value and the reference instead.
func (g *NumericError) Over() string {
	if !g.Got.Finite() {
		return fmt.Sprintf("%v, reference %.6g", float64(g.Got), float64(g.Want))
	}
	return fmt.Sprintf("%.3g times its tolerance", float64(g.Share))
}

// Drift is the difference between an output and the same output in a reference run. It includes both the
// inherited error and the kernel's own error.
type Drift struct {
	MaxAbs Number `json:"max_abs"`
	MSE    Number `json:"mse"`
	SNRdB  Number `json:"snr_db"`
}

// Mode returns "pipelined" if the step was submitted before the result of the previous step was read back,
// and "stepped" if not.
func (s *Step) Mode() string {
	if s.Pipelined {
		return "pipelined"
	}
	return "stepped"
}

// CPU holds what the host did in a step: the times of its phases and the numbers of API calls.
type CPU struct {
	ResizeNS Time `json:"resize_ns,omitzero"`
	UploadNS Time `json:"upload_ns,omitzero"`
	EncodeNS Time `json:"encode_ns,omitzero"`
	SubmitNS Time `json:"submit_ns,omitzero"`
	WaitNS   Time `json:"wait_ns,omitzero"`
	SampleNS Time `json:"sample_ns,omitzero"`
	TotalNS  Time `json:"total_ns,omitzero"`
	// OverlappedNS is the part of the phases before WaitNS in which the GPU worked. The GPU is assumed to
	// work from a submit until the wait for this submit. If the host prepares the next step in this time,
	// that work of the host counts for this step.
	OverlappedNS Time `json:"overlapped_ns,omitzero"`
	// These instants are on the same time axis as GPU.StartNS. StartNS is the start of the step, SubmittedNS
	// is its first submit, and DoneNS is the end of its last wait for the GPU.
	StartNS     Time `json:"start_ns,omitzero"`
	SubmittedNS Time `json:"submitted_ns,omitzero"`
	DoneNS      Time `json:"done_ns,omitzero"`

	Passes     int        `json:"passes"`
	Submits    int        `json:"submits"`
	Writes     int        `json:"writes"`
	WriteBytes int64      `json:"write_bytes"`
	BindGroups int        `json:"bind_groups"`
	Polls      int        `json:"polls"`
	GCs        int        `json:"gcs,omitempty"` // number of garbage collections that paused the program
	GCNS       Time       `json:"gc_ns,omitzero"`
	Compiled   []Compiled `json:"compiled,omitempty"`
}

// Compiled is a pipeline that was compiled in a step, and the time that this took.
type Compiled struct {
	Kernel string `json:"kernel"`
	NS     Time   `json:"ns,omitzero"`
}

// GPU holds times of a step on the clock of the GPU. BusyNS is the sum of the times of the dispatches. SpanNS
// is the time from the start of the first dispatch to the end of the last one.
type GPU struct {
	StartNS Time `json:"start_ns,omitzero"`
	BusyNS  Time `json:"busy_ns,omitzero"`
	SpanNS  Time `json:"span_ns,omitzero"`
}

// Memory is the size of the allocated device memory, and the part of it that the shapes of the step need.
type Memory struct {
	AllocatedBytes int64 `json:"allocated_bytes"`
	LiveBytes      int64 `json:"live_bytes"`
}

// Observer shows the overhead of timing. It holds the times of one decode step at three timing levels:
// medians of N runs at each level. Runs at different levels alternate.
type Observer struct {
	Step      *int `json:"step,omitempty"`      // index of the step that was repeated
	UntimedNS Time `json:"untimed_ns,omitzero"` // wall time at timing level off
	TimedNS   Time `json:"timed_ns,omitzero"`   // wall time at timing level dispatch
	// SpanNS is the GPU span at timing level step, at which timing adds nothing between dispatches.
	SpanNS Time `json:"span_ns,omitzero"`
	// BeforeNS is the time from the start of the step to the first tick of the GPU, at timing level step.
	BeforeNS Time `json:"before_ns,omitzero"`
	// UntimedOff and SpanOff are the errors (±) of UntimedNS and of SpanNS as OffBy computes them. They are
	// absent if N is less than FewestWithin.
	UntimedOff Time `json:"untimed_off_ns,omitzero"`
	SpanOff    Time `json:"span_off_ns,omitzero"`
	N          int  `json:"n"`
}

// Event is something that happened at a step, as text.
type Event struct {
	Step     int         `json:"step"`
	Dispatch *DispatchID `json:"dispatch,omitempty"`
	Kind     string      `json:"kind"`
	Text     string      `json:"text"`
	// Prompt is the text that the model reads from this step on, in an event of the kind prompt or edit.
	// Tokens that are already in the cache are not included.
	Prompt string `json:"prompt,omitempty"`
}
