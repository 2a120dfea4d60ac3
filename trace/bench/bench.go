// Package bench defines the result of a benchmark as plain data. It reads and writes the file format
// gpuscope.bench/1 (docs/guide/bench.md) and prints the result as tables. Package model runs the benchmark.
//
//	r, err := bench.Read(file)
//	...
//	err = r.Print(ctx, os.Stdout, "md")
//
// Times are integers in nanoseconds. A number that was not measured is absent, never 0. Errors name the
// invalid part of a file.
package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
	"gpuscope/trace"
)

// Schema names the format and its major version.
const Schema = "gpuscope.bench/1"

// Result is the result of a benchmark of one model on one device. It has Tests, which measure whole steps, or
// Kernels, which measure isolated operators, but not both.
type Result struct {
	Schema   string         `json:"schema"`
	Producer trace.Producer `json:"producer"`
	Created  string         `json:"created"` // RFC 3339
	Command  []string       `json:"command,omitempty"`
	Host     trace.Host     `json:"host"`
	// Device includes the ceilings that were measured in this benchmark. A software device has none.
	Device trace.Device `json:"device"`
	Model  trace.Model  `json:"model"`
	// Edited lists the model's kernels whose source was replaced (--shaders).
	Edited      []string     `json:"edited,omitempty"`
	Timing      trace.Timing `json:"timing"`      // timing level at which steps ran
	Seed        uint64       `json:"seed"`        // seed of the random token ids
	Repetitions int          `json:"repetitions"` // number of repetitions of each test, without the warm-up
	// Stopped is the reason why the benchmark ended early, or "" if it is complete.
	Stopped string   `json:"stopped,omitempty"`
	Tests   []Test   `json:"tests,omitempty"`
	Kernels []Kernel `json:"kernels,omitempty"`
	// Crossovers holds what FindCrossovers finds in Kernels.
	Crossovers []Crossover `json:"crossovers,omitempty"`
}

// These are the modes in which steps run. In stepped mode each token is read back before the next step
// begins. In pipelined mode the next step takes the token from the device's memory and begins before the
// token is read back.
const (
	Stepped   = "stepped"
	Pipelined = "pipelined"
)

// Test is a prefill or decode of a number of tokens that starts at one depth of the KV cache. It was run
// several times.
type Test struct {
	Name  string      `json:"name"` // "pp512", "tg128 @ d4096"
	Phase trace.Phase `json:"phase"`
	Mode  string      `json:"mode"`
	// Timing is the timing level of the steps of this test, or "" if they ran at the level Result.Timing.
	Timing trace.Timing `json:"timing,omitempty"`
	Tokens int          `json:"tokens"`
	Depth  int          `json:"depth"` // number of filled positions in the KV cache before the test
	Steps  int          `json:"steps"` // number of steps in a repetition
	// WallNS holds the wall time of each repetition, in order. A wall time begins when the first step starts
	// and ends when the last token is read.
	WallNS     []int64 `json:"wall_ns"`
	TokensPerS Range   `json:"tokens_per_s"`
	// Latency is the time to the first token of a prefill, or the time between the tokens of a decode. It is
	// nil if it was not measured.
	Latency *Latency `json:"latency,omitempty"`
	Floor   *Floor   `json:"floor,omitempty"`
	CPU     Split    `json:"cpu"`
	// Canary is the speed of the GPU clock after the test, relative to its speed on the warm device. It is 0
	// if not measured.
	Canary float64 `json:"canary,omitempty"`
}

// Range summarizes the repetitions of a test by the median, the minimum and the maximum.
type Range struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Floor is the shortest possible time of a repetition, given one of the ceilings of the device.
type Floor struct {
	// Of names the ceiling that gives the longer time. "weights" is the time to read all weights once per
	// step at the copy rate, and "flops" is the time to compute at the FLOP rate.
	Of     string `json:"of"`
	Amount int64  `json:"amount"` // modelled bytes or FLOPs of a repetition
	NS     int64  `json:"ns"`
	// Share is NS divided by the median time of a repetition. At a share of 1 the test is as fast as the
	// ceiling allows.
	Share float64 `json:"share"`
}

// Split divides the host's time of a step into phases, in ns. Each number is the mean over all steps of all
// repetitions. OtherNS is the wall time that belongs to none of the other phases. A step may be submitted in
// several pieces. Encoding and submitting all but the first piece overlaps with GPU work.
type Split struct {
	ResizeNS int64 `json:"resize_ns"`
	UploadNS int64 `json:"upload_ns"`
	EncodeNS int64 `json:"encode_ns"`
	SubmitNS int64 `json:"submit_ns"`
	WaitNS   int64 `json:"wait_ns"`
	ReadNS   int64 `json:"read_ns"` // time to read back the token
	OtherNS  int64 `json:"other_ns"`
}

// parts returns pointers to the fields, in the order of their declaration.
func (s *Split) parts() []*int64 {
	return []*int64{&s.ResizeNS, &s.UploadNS, &s.EncodeNS, &s.SubmitNS, &s.WaitNS, &s.ReadNS, &s.OtherNS}
}

// SplitOf returns the host's time of one step, divided into phases. It leaves ReadNS and OtherNS at 0.
func SplitOf(c trace.CPU) Split {
	ns := func(t trace.Time) int64 {
		n, _ := t.NS()
		return n
	}
	return Split{
		ResizeNS: ns(c.ResizeNS), UploadNS: ns(c.UploadNS), EncodeNS: ns(c.EncodeNS),
		SubmitNS: ns(c.SubmitNS), WaitNS: ns(c.WaitNS),
	}
}

// Add adds the times of t to s.
func (s *Split) Add(t Split) {
	others := t.parts()
	for i, part := range s.parts() {
		*part += *others[i]
	}
}

// Per returns a mean: each sum divided by the number of steps n.
func (s Split) Per(n int) Split {
	for _, part := range s.parts() {
		*part /= int64(n)
	}
	return s
}

// Total returns the sum of all fields.
func (s Split) Total() (ns int64) {
	for _, part := range s.parts() {
		ns += *part
	}
	return ns
}

// TestName returns the name that llama-bench uses for a test: "pp512", "tg128 @ d4096".
func TestName(phase trace.Phase, tokens, depth int) string {
	name := map[trace.Phase]string{trace.Prefill: "pp", trace.Decode: "tg"}[phase]
	if depth == 0 {
		return fmt.Sprintf("%s%d", name, tokens)
	}
	return fmt.Sprintf("%s%d @ d%d", name, tokens, depth)
}

// Overhead is the extra time of a test, as a fraction of the time of another test that ran in the same
// rounds. 0.02 means 2%. Share is the median over the rounds. Low and High are the ends of its error
// interval, and Known is true. With fewer than five rounds the error is not known: Known is false, and Low
// and High are the minimum and the maximum.
type Overhead struct {
	Share, Low, High float64
	Known            bool
}

// Significant reports whether the error interval of a known overhead excludes zero.
func (e *Overhead) Significant() bool { return e.Known && (e.Low > 0 || e.High < 0) }

// Tracing returns the overhead of timing: how much longer a test takes than the same test at timing level
// off. `ok` is false if that test was not run.
func (r *Result) Tracing(t *Test) (e Overhead, ok bool) {
	if t.Timing == "" || t.Timing == trace.TimingOff {
		return e, false
	}
	i := slices.IndexFunc(r.Tests, func(u Test) bool {
		return u.Timing == trace.TimingOff && u.Name == t.Name && u.Mode == t.Mode &&
			len(u.WallNS) == len(t.WallNS)
	})
	if i < 0 {
		return e, false
	}
	shares := make([]float64, len(t.WallNS))
	for turn, ns := range t.WallNS {
		shares[turn] = float64(ns)/float64(r.Tests[i].WallNS[turn]) - 1
	}
	slices.Sort(shares)
	e.Share = trace.Quantile(shares, 0.5)
	e.Low, e.High, e.Known = trace.MedianWithin(shares)
	return e, true
}

// StepNS returns the wall time of a step in ns. It is computed from the median of the tokens per second.
func (t *Test) StepNS() float64 {
	return float64(t.Tokens) * 1e9 / t.TokensPerS.Median / float64(t.Steps)
}

// Rates summarizes the tokens per second of the repetitions. There must be at least one.
func Rates(tokens int, wallNS []int64) Range {
	rates := make([]float64, len(wallNS))
	for i, ns := range wallNS {
		rates[i] = float64(tokens) * 1e9 / float64(max(ns, 1))
	}
	slices.Sort(rates)
	return Range{trace.Quantile(rates, 0.5), rates[0], rates[len(rates)-1]}
}

// maxFile is the largest file in bytes that is read. Every result is much smaller.
const maxFile = 64 << 20

// Read reads a result and validates it.
func Read(r io.Reader) (*Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read benchmark: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read benchmark: the file is larger than %d bytes", maxFile)
	}
	var got Result
	if err := readjson.Unmarshal(data, &got); err != nil {
		return nil, fmt.Errorf("read benchmark: %w", err)
	}
	if err := got.check(); err != nil {
		return nil, fmt.Errorf("read benchmark: %w", err)
	}
	return &got, nil
}

// check validates those fields that the tables use.
func (r *Result) check() error {
	if r.Schema != Schema {
		return fmt.Errorf("schema is %q; expected %q", printable.Short(r.Schema, 40), Schema)
	}
	for i := range r.Tests {
		t := &r.Tests[i]
		switch {
		case t.Tokens < 1 || t.Depth < 0 || t.Steps < 1:
			return fmt.Errorf("test %d: invalid number of tokens (%d), depth (%d) or number of steps (%d)",
				i, t.Tokens, t.Depth, t.Steps)
		case len(t.WallNS) == 0 || slices.Min(t.WallNS) <= 0:
			return fmt.Errorf("test %d: wall times are missing or not positive", i)
		case t.TokensPerS != Rates(t.Tokens, t.WallNS):
			return fmt.Errorf("test %d: the tokens per second do not match the wall times", i)
		case t.Floor != nil && (t.Floor.NS <= 0 || t.Floor.Share <= 0):
			return fmt.Errorf("test %d: the time (%d ns) or the share of the floor is not positive",
				i, t.Floor.NS)
		}
		if t.Latency != nil {
			if err := t.Latency.check(); err != nil {
				return fmt.Errorf("test %d: %w", i, err)
			}
		}
	}
	for i := range r.Kernels {
		if err := r.Kernels[i].check(); err != nil {
			return fmt.Errorf("kernel %d: %w", i, err)
		}
	}
	return nil
}

// Write writes a result as JSON.
func (r *Result) Write(w io.Writer) error {
	if r.Schema != Schema {
		return fmt.Errorf("write benchmark: schema is %q; expected %q", printable.Short(r.Schema, 40), Schema)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
