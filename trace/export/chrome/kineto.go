package chrome

import (
	"fmt"
	"io"

	"gpuscope/trace"
	"gpuscope/trace/analyze/timeline"
)

// Kineto is the dialect of PyTorch's profiler, for HolisticTraceAnalysis (HTA) and similar tools. The layout
// is that of the files of libkineto: libkineto/src/output_json.cpp in the repository pytorch/kineto.
var Kineto = trace.Export{
	Name: "kineto", Doc: "Chrome JSON as PyTorch writes it: steps, kernels and their launches",
	Suffix: ".kineto.json",
	Write:  func(out io.Writer, t *trace.Trace) error { return writeKineto(out, t, "wgpuDispatch") },
}

// HTA is Kineto with other names for launches. HTA counts only launches with names of CUDA functions.
var HTA = trace.Export{
	Name: "hta", Doc: "like kineto, for HolisticTraceAnalysis: launches are named cudaLaunchKernel",
	Suffix: ".hta.json",
	Write:  func(out io.Writer, t *trace.Trace) error { return writeKineto(out, t, "cudaLaunchKernel") },
}

// kineto writes a trace in this dialect. `launches` is the name of the events with which the host launches
// dispatches.
type kineto struct {
	*writer
	launches    string
	correlation int64 // number of launches so far
}

func writeKineto(out io.Writer, t *trace.Trace, launches string) error {
	w := kineto{writer: newWriter(out, t), launches: launches}
	w.Object()
	w.IntMember("schemaVersion", 1)
	w.Line()
	w.Key("deviceProperties")
	w.Array()
	w.device()
	w.EndArray()
	w.Line()
	w.Key("distributedInfo")
	w.Raw([]byte(`{"rank": 0}`)) // HTA looks for the rank with a regular expression that wants the blank
	w.Line()
	w.StringMember("displayTimeUnit", "ns")
	w.Key("metadata")
	w.Object()
	w.metadata()
	w.StringMember("launch_events", w.launches+": modelled; the encode phase is divided evenly")
	w.EndObject()
	w.Line()
	w.Key("traceEvents")
	w.Array()
	w.tracks()
	for s := range w.line.Steps(0) {
		w.step(s)
		if w.Err() != nil {
			break
		}
	}
	// HTA ignores the last step of a file. So an extra step is written, which the trace does not have.
	end := timeline.Slice{From: w.line.End + 2, To: w.line.End + 1002}
	if n := len(t.Steps); n > 0 && end.To < timeline.AxisEnd {
		name := fmt.Sprintf("ProfilerStep#%d", t.Steps[n-1].Index+1)
		w.event("X", "user_annotation", name, hostPID, hostTID, end.From)
		w.Key("dur")
		w.Micros(end.To - end.From)
		w.Key("args")
		w.Object()
		w.StringMember("note", "added because HTA ignores the last step")
		w.endArgs()
	}
	w.EndArray()
	w.Line()
	w.StringMember("traceName", "gpuscope")
	w.EndObject()
	return w.Flush()
}

// device writes what is known about the device, with the keys of libkineto.
func (w *kineto) device() {
	d := &w.t.Device
	w.Object()
	w.IntMember("id", 0)
	w.StringMember("name", d.Name)
	if d.Driver != "" {
		w.StringMember("driverVersion", d.Driver)
	}
	for _, m := range [...]struct{ key, limit string }{
		{"maxWorkGroupSize", "max_compute_invocations_per_workgroup"},
		{"sharedMemPerBlock", "max_compute_workgroup_storage_size"},
		{"maxMemAllocSize", "max_buffer_size"},
	} {
		if n := d.Limits[m.limit]; n > 0 && n < 1<<63 {
			w.IntMember(m.key, int64(n))
		}
	}
	w.EndObject()
}

// step writes the events of a step.
func (w *kineto) step(s *timeline.Step) {
	// HTA drops kernels that are not in a step, so the step extends to the end of its GPU work.
	window := timeline.Slice{From: s.Start, To: min(s.To, s.Next-1)}
	if len(s.Host) > 0 && s.Host[0].Kind == timeline.StepSlice {
		window.NS = s.Host[0].NS
	}
	if window.Drawn() {
		name := fmt.Sprintf("ProfilerStep#%d", s.Index)
		w.event("X", "user_annotation", name, hostPID, hostTID, window.From)
		w.Key("dur")
		w.Micros(window.To - window.From)
		w.Key("args")
		w.Object()
		if window.NS > 0 {
			w.IntMember("dur_ns", window.NS)
		}
		w.stepArgs(s)
		w.endArgs()
	}
	var encode timeline.Slice
	for i := range s.Host {
		slice := &s.Host[i]
		if slice.Kind == timeline.StepSlice {
			continue
		}
		if window.Drawn() {
			slice.To = max(slice.From, min(slice.To, window.To-1))
		}
		if slice.Name == "encode" {
			encode = *slice
		}
		w.slice(phaseCategory(slice.Name), slice.Name, hostPID, hostTID, slice)
		w.IntMember("step", int64(s.Index))
		w.endArgs()
	}
	launched := int64(0) // dispatches and blocks
	for i := range s.GPU {
		if s.GPU[i].Kind != timeline.SpanSlice {
			launched++
		}
	}
	first := w.correlation + 1
	for i := range s.GPU {
		slice := &s.GPU[i]
		if slice.Kind == timeline.SpanSlice {
			w.slice("gpu_user_annotation", slice.Name, gpuPID, spansTID, slice)
			w.IntMember("step", int64(s.Index))
			w.endArgs()
			continue
		}
		w.correlation++
		w.kernel(s, slice)
	}
	// The host's time for one dispatch was not measured, so the time of the encode phase is divided evenly.
	if launched == 0 || (encode.To-encode.From)/launched < 2 {
		return
	}
	each := (encode.To - encode.From) / launched
	for n := range launched {
		w.event("X", "privateuse1_runtime", w.launches, hostPID, hostTID, encode.From+n*each)
		w.Key("dur")
		w.Micros(each - 1)
		w.Key("args")
		w.Object()
		w.IntMember("External id", first+n)
		w.IntMember("correlation", first+n)
		w.StringMember("provenance", "modelled")
		w.endArgs()
	}
}

// phaseCategory returns the category of a phase of the host. privateuse1_runtime is PyTorch's category for
// calls of an API that PyTorch does not know.
func phaseCategory(phase string) string {
	switch phase {
	case "resize", "sample":
		return "cpu_op"
	}
	return "privateuse1_runtime"
}

// kernel writes a dispatch. It also writes a block, in the same form as a dispatch.
func (w *kineto) kernel(s *timeline.Step, slice *timeline.Slice) {
	w.slice("kernel", slice.Name, gpuPID, w.lane(slice), slice)
	w.IntMember("External id", w.correlation)
	w.IntMember("correlation", w.correlation)
	w.IntMember("device", 0)
	w.IntMember("context", 0)
	w.IntMember("stream", int64(laneOf(slice.Lane)))
	w.endGPUSlice(s, slice)
}
