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
	"errors"
	"fmt"
	"io"
	"slices"

	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
	"gpuscope/trace"
)

// Schema is the format and major version that this package reads and writes.
const Schema = "gpuscope.bench/1"

// Result is the result of a benchmark of a model on a device. It has either Tests of whole steps or
// Kernels, which are isolated operators.
type Result struct {
	Schema   string         `json:"schema"`
	Producer trace.Producer `json:"producer"`
	Created  string         `json:"created"` // RFC 3339
	Command  []string       `json:"command,omitempty"`
	Host     trace.Host     `json:"host"`
	// Device includes the ceilings measured in the same run. A software device has no ceilings.
	Device trace.Device `json:"device"`
	Model  trace.Model  `json:"model"`
	// Edited lists the names of the kernels that replaced kernels of the model (--shaders).
	Edited      []string     `json:"edited,omitempty"`
	Timing      trace.Timing `json:"timing"`      // timing level of the steps
	Seed        uint64       `json:"seed"`        // seed of the random token ids
	Repetitions int          `json:"repetitions"` // number of counted repetitions of each test
	// Stopped is the reason why the benchmark ended early, or "" if it is complete.
	Stopped string   `json:"stopped,omitempty"`
	Tests   []Test   `json:"tests,omitempty"`
	Kernels []Kernel `json:"kernels,omitempty"`
	// Crossovers is computed from Kernels by FindCrossovers.
	Crossovers []Crossover `json:"crossovers,omitempty"`
}

// These are the modes in which steps run. In stepped mode each token is read back before the next step
// begins. In pipelined mode the next step begins before the token is read back. It reads the token on the
// device.
const (
	Stepped   = "stepped"
	Pipelined = "pipelined"
)

// Test repeatedly processes or generates a number of tokens at one depth of the KV cache.
type Test struct {
	Name  string      `json:"name"` // "pp512", "tg128 @ d4096"
	Phase trace.Phase `json:"phase"`
	Mode  string      `json:"mode"`
	// Timing is the timing level of the test's steps if it differs from Result.Timing.
	Timing trace.Timing `json:"timing,omitempty"`
	Tokens int          `json:"tokens"`
	Depth  int          `json:"depth"` // number of filled positions in the KV cache before the test
	Steps  int          `json:"steps"` // number of steps in a repetition
	// WallNS holds the wall times of the repetitions in order. A wall time lasts from the start of the first
	// step until the last token is read.
	WallNS     []int64 `json:"wall_ns"`
	TokensPerS Range   `json:"tokens_per_s"`
	Floor      *Floor  `json:"floor,omitempty"`
	CPU        Split   `json:"cpu"`
	// Canary is the speed of the GPU's clock after the test, relative to the warm device. 0 means not
	// measured.
	Canary float64 `json:"canary,omitempty"`
}

// Range is the median, the minimum and the maximum over the repetitions.
type Range struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Floor is the shortest possible time of a repetition according to one ceiling of the device.
type Floor struct {
	// Of is "weights" (every step reads all weights once at the copy rate) or "flops" (all floating-point
	// operations are computed at the FLOP rate).
	Of     string `json:"of"`
	Amount int64  `json:"amount"` // modelled bytes or FLOPs of a repetition
	NS     int64  `json:"ns"`
	// Share is NS divided by the median repetition. A share of 1 means that the test is at the floor.
	Share float64 `json:"share"`
}

// Split divides the host's time of a step by phase, in ns. Each time is the mean over all steps of all
// repetitions. Except for the first piece of a step, encoding and submitting overlap with GPU work. Other is
// the rest of the wall time.
type Split struct {
	ResizeNS int64 `json:"resize_ns"`
	UploadNS int64 `json:"upload_ns"`
	EncodeNS int64 `json:"encode_ns"`
	SubmitNS int64 `json:"submit_ns"`
	WaitNS   int64 `json:"wait_ns"`
	ReadNS   int64 `json:"read_ns"` // time to read back the token
	OtherNS  int64 `json:"other_ns"`
}

// parts returns pointers to all fields in order.
func (s *Split) parts() []*int64 {
	return []*int64{&s.ResizeNS, &s.UploadNS, &s.EncodeNS, &s.SubmitNS, &s.WaitNS, &s.ReadNS, &s.OtherNS}
}

// SplitOf returns the host's time of a step by phase. It does not fill ReadNS and OtherNS.
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

// Per divides the sums over n steps by n.
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

// Overhead is the relative extra time of a test compared with another test that ran in the same rounds:
// 0.02 is 2%. Share is the median over the rounds, and it lies between Low and High. With fewer than five
// rounds Low and High are the minimum and the maximum, and Known is false because the error of the median
// is not known.
type Overhead struct {
	Share, Low, High float64
	Known            bool
}

// Significant reports whether the overhead differs from zero by more than its error.
func (e *Overhead) Significant() bool { return e.Known && (e.Low > 0 || e.High < 0) }

// Tracing returns the overhead of timing: the extra time of a test compared with the same test at timing
// level off. ok is false if there is no such test.
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

// StepNS returns the wall time of a step in ns at the median rate of tokens per second.
func (t *Test) StepNS() float64 {
	return float64(t.Tokens) * 1e9 / t.TokensPerS.Median / float64(t.Steps)
}

// Rates returns the tokens per second of one or more repetitions.
func Rates(tokens int, wallNS []int64) Range {
	rates := make([]float64, len(wallNS))
	for i, ns := range wallNS {
		rates[i] = float64(tokens) * 1e9 / float64(max(ns, 1))
	}
	slices.Sort(rates)
	return Range{trace.Quantile(rates, 0.5), rates[0], rates[len(rates)-1]}
}

// maxFile is a size limit in bytes. It is far above the size of any result file.
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

// check validates the fields that the tables need.
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
		return errors.New("write benchmark: the schema is missing or wrong")
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
