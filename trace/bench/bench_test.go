package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// example returns a result with made-up times.
func example() *Result {
	test := func(phase trace.Phase, tokens, depth, steps int, floor string, share float64, ms ...int64) Test {
		t := Test{
			Name: TestName(phase, tokens, depth), Phase: phase, Mode: Stepped, Tokens: tokens, Depth: depth,
			Steps: steps, CPU: Split{1000, 20300, 310000, 95000, 1250000, 4000, 2700},
		}
		for _, n := range ms {
			t.WallNS = append(t.WallNS, n*1e6)
		}
		t.TokensPerS = Rates(tokens, t.WallNS)
		t.Floor = &Floor{Of: floor, Amount: 90e9, NS: int64(share * 1e6 * float64(ms[0])), Share: share}
		return t
	}
	r := &Result{
		Schema: Schema, Producer: trace.Producer{Name: "gpuscope", Version: "0.1.0", Commit: "abc123"},
		Created: "2026-11-22T12:00:00Z", Command: []string{"gpuscope", "bench"},
		Host: trace.Host{OS: "linux", Arch: "amd64", CPUs: 16},
		Device: trace.Device{
			Name: "Big GPU", Backend: "vulkan", Driver: "acme 1.2", AdapterType: trace.AdapterDiscrete,
			Ceilings: &trace.Ceilings{
				CopyBytesPerS: []trace.CopyRate{
					{Bytes: 1 << 20, PerS: 9e12},
					{Bytes: 1 << 30, PerS: 4.24e12},
				},
				FlopsPerS: 5.1e13, FillWorkgroups: 132, N: 5,
			},
		},
		Model:  trace.Model{Name: "tiny | llama", Quantization: "Q4_0", Parameters: 1_100_000},
		Timing: trace.TimingOff, Seed: 1, Repetitions: 3,
		Tests: []Test{
			test("prefill", 512, 0, 1, "flops", 0.62, 36, 35, 37),
			test("decode", 128, 0, 128, "weights", 0.11, 230, 229, 240),
			test("decode", 128, 4096, 128, "weights", 0.0931, 270, 264, 281),
		},
	}
	r.Tests[0].Latency = LatencyOf(FirstToken, []int64{36e6, 35e6, 37e6})
	r.Tests[1].Latency = &Latency{InterToken, 381, 1_790_000, 1_840_000, 2_660_000}
	r.Tests[2].Canary = 0.9
	return r
}

// traced returns a result with token generation in each mode at several timing levels.
func traced() *Result {
	r := example()
	test := r.Tests[1]
	r.Tests = nil
	for _, c := range []struct {
		mode   string
		timing trace.Timing
		ms     []int64
	}{
		{Stepped, trace.TimingOff, []int64{200, 230, 201, 199, 200}},
		{Stepped, trace.TimingStep, []int64{203, 233, 204, 203, 207}}, // one slow round in both
		{Stepped, trace.TimingDispatch, []int64{640, 700, 650, 640, 630}},
		{Pipelined, trace.TimingOff, []int64{180, 181, 180, 179, 183}},
		{Pipelined, trace.TimingStep, []int64{180, 190, 179, 183, 182}},
	} {
		test.Mode, test.Timing, test.WallNS = c.mode, c.timing, nil
		for _, ms := range c.ms {
			test.WallNS = append(test.WallNS, ms*1e6)
		}
		test.TokensPerS = Rates(test.Tokens, test.WallNS)
		r.Tests = append(r.Tests, test)
	}
	return r
}

// kernels returns a result of isolated operators.
func kernels() *Result {
	r := example()
	r.Tests = nil
	for _, k := range []struct {
		tokens, position int
		route            string
		planned          bool
		us               int64
	}{
		{1, 0, "gemv", true, 20},
		{1, 0, "batch4", false, 25},
		{8, 0, "batch4", true, 30},
		{8, 0, "tile64", false, 60},
		{16, 0, "batch4", true, 60},
		{16, 0, "tile64", false, 50},
		{512, 0, "tile64", true, 900},
	} {
		r.Kernels = append(r.Kernels, Kernel{
			Ops: []string{"mlp.gate", "mlp.up"}, Layers: []int{0, 1, 2}, Count: 6,
			Kind: "linear_q4gsw", In: 4096, Out: 14336,
			Tokens: k.tokens, Position: k.position, Route: k.route, Planned: k.planned,
			Kernels: []string{"linear_q4gsw_" + k.route}, NS: k.us * 1e3, Q1NS: k.us * 1e3, Q3NS: k.us * 1e3,
			N: 5, Bytes: 33e6, FLOPs: 2 * 4096 * 14336 * int64(k.tokens),
		})
	}
	sdpa := Kernel{
		Ops: []string{"attn.sdpa"}, Layers: []int{0, 2}, Count: 1, Kind: "sdpa",
		Tokens: 1, Route: "decoding", Planned: true,
		Kernels: []string{"a"}, NS: 3e3, Q1NS: 3e3, Q3NS: 3e3, N: 5, Bytes: 2e4, FLOPs: 1e4,
	}
	deep := sdpa
	deep.Position, deep.NS, deep.Q1NS, deep.Q3NS, deep.Bytes, deep.FLOPs = 4096, 15e3, 14e3, 16e3, 8e7, 1e6
	split := deep
	split.Route, split.Planned, split.Kernels = "split_decoding", false, []string{"a", "b"}
	split.NS, split.Q1NS, split.Q3NS = 12e3, 11e3, 13e3
	all := sdpa // same name, without a window
	all.Layers, all.NS, all.Q1NS, all.Q3NS = []int{1}, 4e3, 4e3, 4e3
	allDeep := deep
	allDeep.Layers, allDeep.NS, allDeep.Q1NS, allDeep.Q3NS = all.Layers, 45e3, 45e3, 45e3
	one := sdpa // one route, outside of the layers
	one.Layers = nil
	one.Ops, one.Kind, one.Kernels = []string{"slice"}, "slice", []string{"copy"}
	one.Route, one.Planned = "", false
	r.Kernels = append(r.Kernels, one, sdpa, deep, split, all, allDeep)
	r.Crossovers = r.FindCrossovers()
	return r
}

// golden compares the output with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if wordingtest.Updating() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("-want +got (go test -update rewrites the file):\n%s", d)
	}
}

func TestPrintedForms(t *testing.T) {
	software := example()
	software.Device = trace.Device{Name: "softpipe", Backend: "vulkan", AdapterType: trace.AdapterCPU}
	for i := range software.Tests {
		software.Tests[i].Floor = nil
	}
	for _, c := range []struct {
		name, format string
		r            *Result
	}{
		{"bench.md", "md", example()},
		{"bench.csv", "csv", example()},
		{"bench.json", "json", example()},
		{"software.md", "md", software},
		{"tracing.md", "md", traced()},
		{"kernels.md", "md", kernels()},
		{"kernels.csv", "csv", kernels()},
	} {
		var b bytes.Buffer
		if err := c.r.Print(context.Background(), &b, c.format); err != nil {
			t.Fatal(err)
		}
		golden(t, c.name, b.String())
	}
}

// A reader of CSV identifies rows by their keys. A reader of a page identifies columns by their titles.
func TestRowsHaveKeysAndColumnsTitles(t *testing.T) {
	for _, r := range []*Result{example(), kernels()} {
		tables := []*table.Table{r.Table()}
		if len(r.Kernels) > 0 {
			tables = append(tables, r.crossoverTable())
		}
		for _, tab := range tables {
			keys, titles := map[string]bool{}, map[string]bool{}
			for _, row := range tab.Rows {
				if row.Key == "" || keys[row.Key] {
					t.Errorf("%s: row key %q is empty or used twice", tab.Name, row.Key)
				}
				keys[row.Key] = true
			}
			for _, c := range tab.Columns {
				if c.Title == "" || titles[c.Title] {
					t.Errorf("%s: column %s: title %q is empty or used twice", tab.Name, c.Name, c.Title)
				}
				titles[c.Title] = true
			}
		}
	}
}

// A result that was measured with edited kernels says so in every output format.
func TestEditedKernelsAreNamed(t *testing.T) {
	for _, r := range []*Result{example(), kernels()} {
		r.Edited = []string{"rms_norm+3fa21b07", "add+01234567"}
		for _, format := range Formats {
			var b bytes.Buffer
			if err := r.Print(context.Background(), &b, format); err != nil {
				t.Fatal(err)
			}
			for _, name := range r.Edited {
				if !strings.Contains(b.String(), name) {
					t.Errorf("%s does not name %s:\n%s", format, name, b.String())
				}
			}
		}
	}
}

// A benchmark that was stopped early says so in every output format. Otherwise its part would look complete.
func TestAPartOfABenchmarkSaysSo(t *testing.T) {
	for _, r := range []*Result{example(), kernels()} {
		r.Stopped = "an interrupt"
		for _, format := range Formats {
			var b bytes.Buffer
			if err := r.Print(context.Background(), &b, format); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), r.Stopped) {
				t.Errorf("%s does not say what stopped it:\n%s", format, b.String())
			}
		}
	}
}

// A test that is faster than the ceiling allows is marked: the ceiling must be wrong.
func TestAShareOfOverAHundredIsMarked(t *testing.T) {
	r := example()
	r.Tests[0].Floor.Share = 1.183
	var b bytes.Buffer
	if err := r.Print(context.Background(), &b, "md"); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); !strings.Contains(s, "| 118.3? |") || !strings.Contains(s, "\nOver 100 % (?) ") {
		t.Error(s)
	}
}

// A program finds a column by its name, so names must be unique.
func TestNoTwoColumnsHaveOneName(t *testing.T) {
	for _, r := range []*Result{example(), traced(), kernels()} {
		var b bytes.Buffer
		if err := r.Print(context.Background(), &b, "csv"); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(b.String(), "\n")
		names := strings.Split(head, ",")
		if slices.Contains(names, "depth") {
			t.Errorf("both n_depth and depth are columns: %s", head)
		}
		slices.Sort(names)
		if n := len(names); len(slices.Compact(names)) < n {
			t.Errorf("duplicate columns: %s", head)
		}
	}
}

func TestWhatWasWrittenIsReadAgain(t *testing.T) {
	for _, want := range []*Result{example(), traced(), kernels()} {
		var b bytes.Buffer
		if err := want.Write(&b); err != nil {
			t.Fatal(err)
		}
		got, err := Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateComparable(trace.Time{})); d != "" {
			t.Error(d)
		}
	}
}

func TestFilesThatAreNoResultsAreRefused(t *testing.T) {
	var b bytes.Buffer
	if err := example().Write(&b); err != nil {
		t.Fatal(err)
	}
	whole := b.String()
	for want, text := range map[string]string{
		"ends unexpectedly":           whole[:len(whole)/2],
		"schema is":                   strings.Replace(whole, "bench/1", "bench/2", 1),
		"times are missing":           strings.Replace(whole, "36000000,", "-1,", 1),
		"do not match the wall times": strings.Replace(whole, "36000000,", "36000001,", 1),
		"tokens (512)":                strings.Replace(whole, `"steps": 1,`, `"steps": 0,`, 1),
		"share of the floor":          strings.Replace(whole, `"share": 0.62`, `"share": -1`, 1),
		"a list where":                "[]",
		"invalid JSON":                "hello",
	} {
		if text == whole {
			t.Errorf("%s: the file was not changed", want)
		}
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// The page that documents the format names every field of a result.
func TestEveryFieldIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/bench.md")
	if err != nil {
		t.Fatal(err)
	}
	r := kernels()
	r.Tests = traced().Tests
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				if !strings.Contains(string(page), "`"+name+"`") {
					t.Errorf("docs/guide/bench.md does not document %s", name)
				}
				// The trace format documents these.
				if name != "device" && name != "model" && name != "host" && name != "producer" {
					look(inner)
				}
			}
		case []any:
			for _, inner := range v {
				look(inner)
			}
		}
	}
	look(all)
}

// From 16 tokens on the tiles are faster, but the plan switches to them later. At a large depth one token is
// faster in splits, which the plan does not use. With a single length there are no crossovers.
func TestCrossoversFollowFromTheFastestRoutes(t *testing.T) {
	want := []Crossover{{
		Ops: []string{"mlp.gate", "mlp.up"}, Layers: []int{0, 1, 2},
		Kind: "linear_q4gsw", In: 4096, Out: 14336,
		Fastest: []Span{
			{[]string{"gemv"}, 1, 1},
			{[]string{"batch4"}, 8, 8},
			{[]string{"tile64"}, 16, 512},
		},
		Planned: []Span{
			{[]string{"gemv"}, 1, 1},
			{[]string{"batch4"}, 8, 16},
			{[]string{"tile64"}, 512, 512},
		},
	}, {
		Ops: []string{"attn.sdpa"}, Layers: []int{0, 2}, Kind: "sdpa", ByPosition: true,
		Fastest: []Span{{[]string{"decoding"}, 0, 0}, {[]string{"split_decoding"}, 4096, 4096}},
		Planned: []Span{{[]string{"decoding"}, 0, 4096}},
	}, { // same name, kind and matrix
		Ops: []string{"attn.sdpa"}, Layers: []int{1}, Kind: "sdpa", ByPosition: true,
		Fastest: []Span{{[]string{"decoding"}, 0, 4096}},
		Planned: []Span{{[]string{"decoding"}, 0, 4096}},
	}}
	if d := cmp.Diff(want, kernels().Crossovers); d != "" {
		t.Error(d)
	}
	oneLength := Result{Kernels: kernels().Kernels[:2]}
	if got := oneLength.FindCrossovers(); len(got) != 0 {
		t.Errorf("at one length: %+v", got)
	}
}

// The overhead of timing comes from pairs of runs in the same round. It is a number only if it is
// significant.
func TestTimingOverheadIsMeasuredInTurns(t *testing.T) {
	r := traced()
	want := map[int][2]bool{0: {}, 1: {true, true}, 2: {true, true}, 3: {}, 4: {true, false}}
	for i := range r.Tests {
		e, ok := r.Tracing(&r.Tests[i])
		if got := [2]bool{ok, e.Significant()}; got != want[i] {
			t.Errorf("test %d: %+v, %v, want %v", i, e, got, want[i])
		}
	}
	e, _ := r.Tracing(&r.Tests[1])
	if want := (Overhead{3.0 / 200, 3.0 / 230, 7.0 / 200, true}); math.Abs(e.Share-want.Share) > 1e-3 ||
		math.Abs(e.Low-want.Low) > 1e-9 || math.Abs(e.High-want.High) > 1e-9 {
		t.Errorf("%+v, want about %+v", e, want)
	}
	for i := range r.Tests { // four rounds are too few, however similar they are
		r.Tests[i].WallNS = r.Tests[i].WallNS[:4]
	}
	if e, ok := r.Tracing(&r.Tests[1]); !ok || e.Known || e.Significant() || e.High <= e.Low {
		t.Errorf("with four rounds: %+v", e)
	}
}

// The step time and the tokens per second of a row agree.
func TestStepTimeAgreesWithTokensPerSecond(t *testing.T) {
	r := example()
	r.Tests[0].WallNS = []int64{36e6, 36e6, 360e6} // one slow step
	r.Tests[0].TokensPerS = Rates(512, r.Tests[0].WallNS)
	if ns := r.Tests[0].StepNS(); math.Abs(ns-36e6) > 1 {
		t.Errorf("a step takes %v", ns)
	}
	if ns := r.Tests[1].StepNS(); math.Abs(ns-230e6/128) > 1 {
		t.Errorf("each of 128 steps takes %v", ns)
	}
}

// Noise causes no crossover: a route stays the fastest until another is significantly faster.
func TestScatterCrossesNothing(t *testing.T) {
	r := &Result{}
	for _, k := range []struct {
		tokens     int
		route      string
		ns, spread int64
	}{
		{1, "gemv", 20, 1},
		{1, "batch4", 30, 2},
		{2, "gemv", 26, 3}, // not significantly different
		{2, "batch4", 25, 3},
		{3, "gemv", 40, 2},
		{3, "batch4", 30, 2},
		{4, "gemv", 39, 9},
		{4, "batch4", 41, 9},
	} {
		r.Kernels = append(r.Kernels, Kernel{
			Ops: []string{"up"}, Tokens: k.tokens, Route: k.route, NS: k.ns, Q1NS: k.ns - k.spread,
			Q3NS: k.ns + k.spread, N: 5, Count: 1,
		})
	}
	want := []Span{{[]string{"gemv"}, 1, 2}, {[]string{"batch4"}, 3, 4}}
	got := r.FindCrossovers()
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if d := cmp.Diff(want, got[0].Fastest); d != "" {
		t.Error(d)
	}
	rows := r.kernelTable()
	var words []string
	for i := range r.Kernels {
		words = append(words, rows.Cell(i, rows.Column("chosen")).Text)
	}
	if want := "fastest,,=,=,,fastest,=,="; strings.Join(words, ",") != want {
		t.Errorf("marks %q, want %q", words, want)
	}
	for i := range r.Kernels {
		r.Kernels[i].N = 2
	}
	want = []Span{{[]string{"gemv", "batch4"}, 1, 4}}
	if d := cmp.Diff(want, r.FindCrossovers()[0].Fastest); d != "" {
		t.Errorf("two runs are too few: %s", d)
	}
}

func TestRatesAreThoseOfTheRepetitions(t *testing.T) {
	got := Rates(100, []int64{1e9, 4e9, 2e9})
	if want := (Range{Median: 50, Min: 25, Max: 100}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	parts := Split{1, 2, 3, 4, 5, 6, 7}
	parts.Add(Split{9, 8, 7, 6, 5, 4, 3})
	if parts.Total() != 70 || parts.Per(10) != (Split{1, 1, 1, 1, 1, 1, 1}) {
		t.Errorf("%+v", parts)
	}
}
