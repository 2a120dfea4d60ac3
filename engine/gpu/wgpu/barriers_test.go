//go:build cgo && unix

package wgpu

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	binding "github.com/cogentcore/webgpu/wgpu"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
)

// use is a dispatch's access to a buffer.
type use struct {
	buffer int
	access gpu.Access
}

// gpu.Barriers computes levels without a device. For random recordings it must find the same barriers as the
// library's log.
func TestBarriersAreWhereTheLibraryPutsThem(t *testing.T) {
	dev := openAny(t)
	var buffers []gpu.Buffer
	for i := range 5 {
		b, err := dev.NewBuffer(fmt.Sprint(i), 16, gpu.Storage)
		if err != nil {
			t.Fatal(err)
		}
		buffers = append(buffers, b)
	}
	dispatch := rapid.Custom(func(t *rapid.T) []use {
		order := rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "buffers")
		uses := make([]use, rapid.IntRange(1, 4).Draw(t, "bindings"))
		for i := range uses {
			uses[i] = use{
				order[i],
				rapid.SampledFrom([]gpu.Access{gpu.Read, gpu.Read, gpu.ReadWrite}).Draw(t, "access"),
			}
		}
		return uses
	})
	rapid.Check(t, func(t *rapid.T) {
		passes := rapid.SliceOfN(rapid.SliceOfN(dispatch, 1, 6), 1, 3).Draw(t, "passes")
		got, want := logged(t, dev, buffers, passes), modelled(passes)
		if got != want {
			t.Fatalf("passes %v\nthe library: %s\nBarriers:    %s", passes, got, want)
		}
	})
}

// modelled returns what gpu.Barriers computes: a line of dispatches for each pass, with | before each that
// has a barrier, and the number of levels.
func modelled(passes [][][]use) string {
	var b gpu.Barriers
	var s strings.Builder
	b.Begin()
	for _, pass := range passes {
		b.BeginPass()
		for _, uses := range pass {
			for _, u := range uses {
				b.Touch(u.buffer, u.access)
			}
			if b.Dispatch() {
				s.WriteString("|")
			}
			s.WriteString(".")
		}
		b.EndPass()
		s.WriteString("\n")
	}
	return s.String() + fmt.Sprint(b.Levels())
}

// logged runs the passes and derives the same text from the library's log.
func logged(t *rapid.T, dev *device, buffers []gpu.Buffer, passes [][][]use) string {
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	enc, err := dev.Begin("barriers")
	must(err)
	for _, pass := range passes {
		must(enc.BeginPass("pass"))
		for _, uses := range pass {
			desc := gpu.PipelineDesc{Label: "nothing", Source: "@compute @workgroup_size(1) fn main() {}"}
			var bindings []gpu.Binding
			for _, u := range uses {
				desc.Bindings = append(desc.Bindings, u.access)
				bindings = append(bindings, gpu.Binding{Buffer: buffers[u.buffer]})
			}
			p, err := dev.NewPipeline(desc)
			must(err)
			g, err := dev.NewBindGroup("group", p, bindings)
			must(err)
			enc.Dispatch(p, g, 1, 1, 1)
			p.Release()
			g.Release()
		}
		must(enc.EndPass())
	}
	var log bytes.Buffer
	restore, err := captureStderr(&log)
	must(err)
	binding.SetLogLevel(binding.LogLevelTrace)
	err = enc.Submit()
	binding.SetLogLevel(binding.LogLevelOff)
	restore()
	must(err)
	must(dev.Wait())

	// Each dispatch logs its transitions, if any, and then a line about its barriers. The transitions before
	// a pass are logged when the pass has ended. They therefore appear before the first dispatch of the next
	// pass, which has no transitions itself.
	recording, _, _ := strings.Cut(log.String(), "Queue::submit")
	parts := strings.Split(recording, "Encoding dispatch barriers")
	barrier := func(part int) bool { return strings.Contains(parts[part], "transition ") }
	var s strings.Builder
	levels, part := 1, 0
	for i, pass := range passes {
		for j := range pass {
			if j > 0 && barrier(part) {
				levels++
				s.WriteString("|")
			}
			s.WriteString(".")
			part++
		}
		if part >= len(parts) {
			t.Fatalf("the log has %d dispatches:\n%s", len(parts)-1, log.String())
		}
		if i > 0 && barrier(part) {
			levels++
		}
		s.WriteString("\n")
	}
	return s.String() + fmt.Sprint(levels)
}
