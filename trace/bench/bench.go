// Package bench is the result of a benchmark as plain data: its file format gpuscope.bench/1
// (docs/guide/bench.md) and the tables that it is printed as. package model measures it.
//
//	r, err := bench.Read(file)
//	...
//	err = r.Print(ctx, os.Stdout, "md")
//
// Times are integers in nanoseconds. A number that was not measured is absent, never 0. Errors say what of a
// file is not as it should be.
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

// Schema is the format and major version that this package writes and reads.
const Schema = "gpuscope.bench/1"

// Result is what was measured of a model on a device: whole steps as Tests, or operators alone as Kernels.
type Result struct {
	Schema   string         `json:"schema"`
	Producer trace.Producer `json:"producer"`
	Created  string         `json:"created"` // RFC 3339
	Command  []string       `json:"command,omitempty"`
	Host     trace.Host     `json:"host"`
	// Device has the ceilings that were measured in the same run; none on a software device.
	Device trace.Device `json:"device"`
	Model  trace.Model  `json:"model"`
	// Edited are the names of what ran in place of kernels of the model, by --shaders.
	Edited      []string     `json:"edited,omitempty"`
	Timing      trace.Timing `json:"timing"`      // level at which steps ran
	Seed        uint64       `json:"seed"`        // of the token ids
	Repetitions int          `json:"repetitions"` // of each test that count
	// Stopped is why it ended before all was measured, "" where all was.
	Stopped string   `json:"stopped,omitempty"`
	Tests   []Test   `json:"tests,omitempty"`
	Kernels []Kernel `json:"kernels,omitempty"`
	// Crossovers follow from Kernels: see FindCrossovers.
	Crossovers []Crossover `json:"crossovers,omitempty"`
}

// The modes in which steps run. Stepped: each token is read back before the next step begins. Pipelined: the
// next step begins before, and its token goes from output to input on the device.
const (
	Stepped   = "stepped"
	Pipelined = "pipelined"
)

// Test is a number of tokens that were taken in or made, again and again, from one depth.
type Test struct {
	Name  string      `json:"name"` // "pp512", "tg128 @ d4096"
	Phase trace.Phase `json:"phase"`
	Mode  string      `json:"mode"`
	// Timing is the level at which its steps ran, where that is not the result's.
	Timing trace.Timing `json:"timing,omitempty"`
	Tokens int          `json:"tokens"`
	Depth  int          `json:"depth"` // positions that were filled before
	Steps  int          `json:"steps"` // of a repetition
	// WallNS is what each repetition took, in order, from its first step's begin until its last token was
	// read.
	WallNS     []int64 `json:"wall_ns"`
	TokensPerS Range   `json:"tokens_per_s"`
	Floor      *Floor  `json:"floor,omitempty"`
	CPU        Split   `json:"cpu"`
	// Canary is the speed of the GPU's clock after the test, in proportion to the warm one; 0: not measured.
	Canary float64 `json:"canary,omitempty"`
}

// Range is the median of repetitions, the least and the largest.
type Range struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Floor is the least time that a repetition could take by one of the device's ceilings.
type Floor struct {
	Of     string `json:"of"`     // weights: all read once a step at the copy rate; flops: at the FLOP rate
	Amount int64  `json:"amount"` // modelled bytes or FLOPs of a repetition
	NS     int64  `json:"ns"`
	// Share is NS over the median repetition: 1 is at the floor.
	Share float64 `json:"share"`
}

// Split is where the host's time of a step went: means over all steps of all repetitions, in ns. Encode and
// submit overlap the GPU's work except for the first piece. Other is what is left of the wall time.
type Split struct {
	ResizeNS int64 `json:"resize_ns"`
	UploadNS int64 `json:"upload_ns"`
	EncodeNS int64 `json:"encode_ns"`
	SubmitNS int64 `json:"submit_ns"`
	WaitNS   int64 `json:"wait_ns"`
	ReadNS   int64 `json:"read_ns"` // the token
	OtherNS  int64 `json:"other_ns"`
}

// parts are all of a split's, in order.
func (s *Split) parts() []*int64 {
	return []*int64{&s.ResizeNS, &s.UploadNS, &s.EncodeNS, &s.SubmitNS, &s.WaitNS, &s.ReadNS, &s.OtherNS}
}

// SplitOf is what a step took the host, except for reading its token and what is left.
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

// Add adds another split.
func (s *Split) Add(t Split) {
	others := t.parts()
	for i, part := range s.parts() {
		*part += *others[i]
	}
}

// Per is the mean of n steps that were added up.
func (s Split) Per(n int) Split {
	for _, part := range s.parts() {
		*part /= int64(n)
	}
	return s
}

// Total is the sum of all parts.
func (s Split) Total() (ns int64) {
	for _, part := range s.parts() {
		ns += *part
	}
	return ns
}

// TestName is the name that llama-bench gives a test: "pp512", "tg128 @ d4096".
func TestName(phase trace.Phase, tokens, depth int) string {
	name := map[trace.Phase]string{trace.Prefill: "pp", trace.Decode: "tg"}[phase]
	if depth == 0 {
		return fmt.Sprintf("%s%d", name, tokens)
	}
	return fmt.Sprintf("%s%d @ d%d", name, tokens, depth)
}

// Overhead is by how much longer a test took than another in the same turns, as a share of that: 0.02 is 2 %.
// It is the median of the turns, which lies between Low and High. Of fewer than five turns these are the
// least and the greatest, and how far the median may be off is not Known.
type Overhead struct {
	Share, Low, High float64
	Known            bool
}

// Significant reports that it is more or less than zero by more than it may be off by.
func (e *Overhead) Significant() bool { return e.Known && (e.Low > 0 || e.High < 0) }

// Tracing is how much longer a test took than the one that differs from it by its timing alone, which is
// off. ok is false if there is no matching test with timing off.
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

// StepNS is the wall time of a step at the median of tokens a second.
func (t *Test) StepNS() float64 {
	return float64(t.Tokens) * 1e9 / t.TokensPerS.Median / float64(t.Steps)
}

// Rates are tokens a second of repetitions, at least one.
func Rates(tokens int, wallNS []int64) Range {
	rates := make([]float64, len(wallNS))
	for i, ns := range wallNS {
		rates[i] = float64(tokens) * 1e9 / float64(max(ns, 1))
	}
	slices.Sort(rates)
	return Range{trace.Quantile(rates, 0.5), rates[0], rates[len(rates)-1]}
}

// maxFile is far over what a result takes.
const maxFile = 64 << 20

// Read reads a result and checks it.
func Read(r io.Reader) (*Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read benchmark: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read benchmark: larger than %d bytes", maxFile)
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

// check says what is not as the tables need it.
func (r *Result) check() error {
	if r.Schema != Schema {
		return fmt.Errorf("schema is %q, want %q", printable.Short(r.Schema, 40), Schema)
	}
	for i := range r.Tests {
		t := &r.Tests[i]
		switch {
		case t.Tokens < 1 || t.Depth < 0 || t.Steps < 1:
			return fmt.Errorf("test %d has %d tokens at depth %d in %d steps", i, t.Tokens, t.Depth, t.Steps)
		case len(t.WallNS) == 0 || slices.Min(t.WallNS) <= 0:
			return fmt.Errorf("test %d has no wall times, or one that is not above 0", i)
		case t.TokensPerS != Rates(t.Tokens, t.WallNS):
			return fmt.Errorf("test %d: tokens per second do not match its wall times", i)
		case t.Floor != nil && (t.Floor.NS <= 0 || t.Floor.Share <= 0):
			return fmt.Errorf("test %d has a floor of %d ns", i, t.Floor.NS)
		}
	}
	for i := range r.Kernels {
		if err := r.Kernels[i].check(); err != nil {
			return fmt.Errorf("kernel %d: %w", i, err)
		}
	}
	return nil
}

// Write writes a result as JSON, which Read reads.
func (r *Result) Write(w io.Writer) error {
	if r.Schema != Schema {
		return errors.New("write benchmark: no schema")
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
