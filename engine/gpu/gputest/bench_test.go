package gputest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuscope/engine/gpu"
)

// patternSource returns a kernel of one workgroup that accesses its four buffers and does almost nothing.
func patternSource(access [4]gpu.Access) string {
	var s strings.Builder
	for i, a := range access {
		fmt.Fprintf(&s, "@group(0) @binding(%d) var<storage, %s> b%d: array<u32>;\n", i, a, i)
	}
	s.WriteString("@compute @workgroup_size(32) fn main(@builtin(local_invocation_id) id: vec3<u32>) {\n  var sum = 0u;\n")
	for i, a := range access {
		if a == gpu.Read {
			fmt.Fprintf(&s, "  sum += b%d[id.x];\n", i)
		}
	}
	for i, a := range access {
		if a == gpu.ReadWrite {
			fmt.Fprintf(&s, "  b%d[id.x] = sum;\n", i)
		}
	}
	return s.String() + "}\n"
}

// BenchmarkBarriers measures the cost of the barriers that gpu.Barriers counts: GPU time per dispatch and per
// level, for a pass of small dispatches. The patterns have equally many dispatches but more or fewer
// barriers. A word is a dispatch that reads the lower-case buffers and writes the upper-case one. Each
// repetition has its own buffers.
func BenchmarkBarriers(b *testing.B) {
	dev := Open(b)
	if !dev.Info().Timestamps {
		b.Skip("this adapter has no timestamps")
	}
	for _, pattern := range []struct{ name, words string }{
		{"side by side", "aB aC aD aE"},
		{"chain", "aB bC cD dE"},
		{"a barrier for each of two reads", "A B aC bD"},
		{"one barrier for both reads", "A B abC abD"},
	} {
		b.Run(pattern.name, func(b *testing.B) { benchmarkPattern(b, dev, strings.Fields(pattern.words)) })
	}
}

func benchmarkPattern(b *testing.B, dev gpu.Device, words []string) {
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	const repeats, names = 64, 6 // buffers a to e, and one for unused bindings
	pipelines := map[string]gpu.Pipeline{}
	for _, word := range words {
		access := [4]gpu.Access{}
		for i, name := range word {
			if name < 'a' {
				access[i] = gpu.ReadWrite
			}
		}
		p, err := dev.NewPipeline(gpu.PipelineDesc{
			Label: word, Source: patternSource(access),
			Bindings: access[:],
		})
		must(err)
		defer p.Release()
		pipelines[word] = p
	}
	var groups []gpu.BindGroup
	var model gpu.Barriers
	model.Begin()
	model.BeginPass()
	for r := range repeats {
		var buffers [names]gpu.Buffer
		for i := range buffers {
			var err error
			buffers[i], err = dev.NewBuffer(fmt.Sprint(r, i), 128, gpu.Storage)
			must(err)
			defer buffers[i].Release()
		}
		for _, word := range words {
			bindings := slices.Repeat([]gpu.Binding{{Buffer: buffers[names-1]}}, 4)
			for i, name := range strings.ToLower(word) {
				access := gpu.Read
				if word[i] < 'a' {
					access = gpu.ReadWrite
				}
				bindings[i].Buffer = buffers[name-'a']
				model.Touch(names*r+int(name-'a'), access)
			}
			model.Dispatch()
			g, err := dev.NewBindGroup(word, pipelines[word], bindings)
			must(err)
			defer g.Release()
			groups = append(groups, g)
		}
	}
	ts, err := dev.NewTimestamps(2)
	must(err)
	defer ts.Release()
	var times []uint64
	var record, submit time.Duration
	for b.Loop() {
		start := time.Now()
		enc, err := dev.Begin("barriers")
		must(err)
		must(enc.Timestamp(ts, 0))
		must(enc.BeginPass("pass"))
		for i, g := range groups {
			enc.Dispatch(pipelines[words[i%len(words)]], g, 1, 1, 1)
		}
		must(enc.EndPass())
		must(enc.Timestamp(ts, 1))
		must(enc.Resolve(ts, 2))
		recorded := time.Now()
		must(enc.Submit())
		submitted := time.Now()
		record += recorded.Sub(start)
		submit += submitted.Sub(recorded)
		must(dev.Wait())
		var ticks [2]uint64
		must(ts.Read(ticks[:]))
		times = append(times, ticks[1]-ticks[0])
	}
	slices.Sort(times)
	median, dispatches := float64(times[len(times)/2]), float64(len(groups))
	b.ReportMetric(median/dispatches, "ticks/dispatch")
	b.ReportMetric(float64(model.Levels()-1)/repeats, "barriers/repeat")
	b.ReportMetric(float64(record.Nanoseconds())/float64(b.N)/dispatches, "record-ns/dispatch")
	b.ReportMetric(float64(submit.Nanoseconds())/float64(b.N)/dispatches, "submit-ns/dispatch")
}
