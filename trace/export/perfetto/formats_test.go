//go:build formats

package perfetto_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/export/perfetto"
	"gpuscope/trace/tracetest"
)

// message is the fields of a message by number, with the names that Perfetto's .proto files give them.
type message map[int]field

type field struct {
	name   string
	fields message // nil if the field is not a message
	// key is the number of the field of a repeated message that identifies one of them: its id or its name.
	key int
}

var (
	dim3     = message{1: {name: "x"}, 2: {name: "y"}, 3: {name: "z"}}
	named    = message{1: {name: "iid"}, 2: {name: "name"}}
	argument = message{1: {name: "name_iid"}, 3: {name: "int_value"}, 6: {name: "string_value"}}
	packet   = message{
		8: {name: "timestamp"}, 10: {name: "trusted_packet_sequence_id"}, 13: {name: "sequence_flags"},
		11: {name: "track_event", fields: message{
			4: {name: "debug_annotations", key: 10, fields: message{
				4: {name: "int_value"}, 6: {name: "string_value"}, 10: {name: "name"},
			}},
			9: {name: "type"}, 11: {name: "track_uuid"}, 22: {name: "categories"}, 23: {name: "name"},
			30: {name: "counter_value"},
			3000: {name: "gpu_correlation", fields: message{
				1: {name: "render_stage_submission_event_ids"}, 2: {name: "render_stage_wait_event_ids"},
			}},
		}},
		12: {name: "interned_data", fields: message{
			2: {name: "event_names", key: 1, fields: named},
			23: {name: "graphics_contexts", key: 1, fields: message{
				1: {name: "iid"}, 2: {name: "pid"}, 3: {name: "api"},
			}},
			24: {name: "gpu_specifications", key: 1, fields: message{
				1: {name: "iid"}, 2: {name: "name"}, 4: {name: "category"},
			}},
			1000: {name: "compute_kernels", key: 1, fields: named},
			1001: {name: "compute_arg_names", key: 1, fields: named},
		}},
		53: {name: "gpu_render_stage_event", fields: message{
			1: {name: "event_id"}, 2: {name: "duration"}, 5: {name: "context"}, 10: {name: "submission_id"},
			11: {name: "gpu_id"}, 13: {name: "hw_queue_iid"}, 14: {name: "stage_iid"},
			19: {name: "kernel_iid"},
			20: {name: "name_iid"},
			21: {name: "launch", fields: message{
				1: {name: "grid_size", fields: dim3}, 2: {name: "workgroup_size", fields: dim3},
				3: {name: "args", key: 1, fields: argument},
			}},
		}},
		60: {name: "track_descriptor", fields: message{
			1: {name: "uuid"}, 2: {name: "name"}, 5: {name: "parent_uuid"}, 11: {name: "child_ordering"},
			12: {name: "sibling_order_rank"},
			3:  {name: "process", fields: message{1: {name: "pid"}, 6: {name: "process_name"}}},
			4: {name: "thread", fields: message{
				1: {name: "pid"}, 2: {name: "tid"}, 5: {name: "thread_name"},
			}},
			8: {name: "counter", fields: message{3: {name: "unit"}}},
		}},
	}
)

// node is a field in the text that protoc --decode_raw prints. A message has nodes instead of a value.
type node struct {
	number  int
	value   string
	message bool
	nodes   []node
}

// parse parses the lines of a message up to its closing brace, and returns the lines after it.
func parse(t *testing.T, lines []string) (nodes []node, rest []string) {
	t.Helper()
	for len(lines) > 0 {
		line := strings.TrimSpace(lines[0])
		lines = lines[1:]
		if line == "" {
			continue
		}
		if line == "}" {
			return nodes, lines
		}
		number, value, scalar := strings.Cut(line, ": ")
		if !scalar {
			number, _ = strings.CutSuffix(line, " {")
		}
		var n node
		var err error
		if n.number, err = strconv.Atoi(number); err != nil {
			t.Fatalf("protoc prints the line %q", line)
		}
		if n.value, n.message = value, !scalar; n.message {
			n.nodes, lines = parse(t, lines)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// text returns the value of a node: the digits of a number, or a string without its quotes. protoc shows a
// string as a message if its bytes happen to be one. Encoding this message returns the string.
func (n node) text(t *testing.T) string {
	t.Helper()
	if !n.message {
		if !strings.HasPrefix(n.value, `"`) {
			return n.value
		}
		s, err := strconv.Unquote(strings.ReplaceAll(n.value, `\'`, `'`))
		if err != nil {
			t.Fatalf("%s: %v", n.value, err)
		}
		return s
	}
	var b []byte
	for _, part := range n.nodes {
		number := protowire.Number(part.number)
		if part.message { // in a text of letters a group, because the length of a message is a small number
			b = protowire.AppendTag(b, number, protowire.StartGroupType)
			b = append(b, part.text(t)...)
			b = protowire.AppendTag(b, number, protowire.EndGroupType)
			continue
		}
		if strings.HasPrefix(part.value, `"`) {
			b = protowire.AppendTag(b, number, protowire.BytesType)
			b = protowire.AppendString(b, part.text(t))
			continue
		}
		v, err := strconv.ParseUint(part.value, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		switch len(part.value) { // fixed numbers are printed with all their hexadecimal digits
		case len("0x") + 8:
			b = protowire.AppendTag(b, number, protowire.Fixed32Type)
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		case len("0x") + 16:
			b = protowire.AppendTag(b, number, protowire.Fixed64Type)
			b = binary.LittleEndian.AppendUint64(b, v)
		default:
			b = protowire.AppendTag(b, number, protowire.VarintType)
			b = protowire.AppendVarint(b, v)
		}
	}
	return string(b)
}

// values holds the values of a message by their path, such as track_event.debug_annotations[step].int_value.
// A space separates the values of a repeated field.
type values map[string]string

// read adds the values of a message. It fails for a field whose number is not published.
func (v values) read(t *testing.T, path string, m message, nodes []node) {
	t.Helper()
	for _, n := range nodes {
		f, ok := m[n.number]
		if !ok {
			t.Fatalf("%s has a field %d: %+v", path, n.number, n)
		}
		at := path + f.name
		switch {
		case f.fields == nil:
			v[at] = strings.TrimPrefix(v[at]+" "+n.text(t), " ")
		case !n.message:
			t.Fatalf("%s is no message: %s", at, n.value)
		default:
			if f.key != 0 {
				key := "none"
				for _, part := range n.nodes {
					if part.number == f.key {
						key = part.text(t)
					}
				}
				at += "[" + key + "]"
			}
			v.read(t, at+".", f.fields, n.nodes)
		}
	}
}

// id returns the id of an entry in a list of interned names.
func (v values) id(t *testing.T, list, name string) string {
	t.Helper()
	for path, s := range v {
		if list, ok := strings.CutPrefix(path, "interned_data."+list+"["); ok && s == name {
			if id, ok := strings.CutSuffix(list, "].name"); ok {
				return id
			}
		}
	}
	t.Fatalf("%s has no entry %q", list, name)
	return ""
}

// decoded writes a trace and returns the packets of the file, as protoc decodes them.
func decoded(t *testing.T, tr *trace.Trace) (packets []values) {
	t.Helper()
	var b bytes.Buffer
	if err := perfetto.Format.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("protoc", "--decode_raw")
	cmd.Stdin = &b
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	nodes, _ := parse(t, strings.Split(string(out), "\n"))
	for i, n := range nodes {
		if n.number != 1 {
			t.Fatalf("the trace has a field %d", n.number)
		}
		p := values{}
		p.read(t, "", packet, n.nodes)
		flags := "2" // needs the interned data
		if i == 0 {
			flags = "1" // clears it
		}
		if p["trusted_packet_sequence_id"] != "1" || p["sequence_flags"] != flags {
			t.Fatalf("packet %d is in sequence %s with the flags %s", i, p["trusted_packet_sequence_id"],
				p["sequence_flags"])
		}
		delete(p, "trusted_packet_sequence_id")
		delete(p, "sequence_flags")
		packets = append(packets, p)
	}
	return packets
}

// having returns the packets that have a field, which must be a message.
func having(packets []values, name string) (list []values) {
	for _, p := range packets {
		for path := range p {
			if strings.HasPrefix(path, name+".") {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

func TestProtocDecodesTheGPUEvents(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 4)
	packets := decoded(t, tr)
	in := packets[0]
	for name, want := range map[string]string{"pid": "1", "api": "2"} { // 2 is Vulkan
		if got := in["interned_data.graphics_contexts[1]."+name]; got != want {
			t.Errorf("%s of the context is %q, want %s", name, got, want)
		}
	}
	for name, category := range map[string]string{ // 2 is compute, 0 is other
		"queue 0": "2", "dispatch": "2", "steps": "0", "step": "0",
	} {
		at := "interned_data.gpu_specifications[" + in.id(t, "gpu_specifications", name) + "].category"
		if in[at] != category {
			t.Errorf("%s of %s is %s, want %s", at, name, in[at], category)
		}
	}
	sizes := map[string][3]int{} // of workgroups
	for _, k := range tr.Graph.Kernels {
		sizes[k.Name] = k.WorkgroupSize
	}
	events := having(packets, "gpu_render_stage_event")
	n, dispatches := 0, 0
	for s := range timeline.New(analyze.NewIndex(tr)).Steps(0) {
		for _, slice := range s.GPU {
			want := values{
				"timestamp": strconv.FormatInt(slice.From, 10),
			}
			event := func(name string, v any) { want["gpu_render_stage_event."+name] = fmt.Sprint(v) }
			arg := func(name string, v any) {
				id, kind := in.id(t, "compute_arg_names", name), "int_value"
				if _, ok := v.(string); ok {
					kind = "string_value"
				}
				event("launch.args["+id+"].name_iid", id)
				event("launch.args["+id+"]."+kind, v)
			}
			event("event_id", n+1)
			event("duration", slice.NS)
			event("context", 1)
			event("submission_id", s.At+1)
			event("gpu_id", 0)
			event("name_iid", in.id(t, "event_names", slice.Name))
			queue, stage := "steps", "step"
			if slice.Kind == timeline.DispatchSlice {
				dispatches++
				queue, stage = "queue 0", "dispatch"
				d := tr.Steps[s.At].Dispatches[slice.At]
				p := tr.Plans[d.Plan]
				of := tr.Graph.Dispatches[p.Dispatch]
				op := tr.Graph.Ops[of.Op]
				ns, ok := d.GPUNS.NS()
				if !ok {
					t.Fatalf("dispatch %d of step %d was not timed", slice.At, s.Index)
				}
				event("duration", ns)
				event("kernel_iid", in.id(t, "compute_kernels", p.Kernel))
				threads := int64(1)
				for i, axis := range []string{"x", "y", "z"} {
					size := sizes[p.Kernel][i]
					event("launch.grid_size."+axis, p.Workgroups[i])
					event("launch.workgroup_size."+axis, size)
					threads *= int64(p.Workgroups[i]) * int64(size)
				}
				arg("thread_count", threads)
				arg("dispatch", p.Dispatch)
				arg("plan", d.Plan)
				arg("op", of.Named(op.Name))
				arg("op_kind", op.Kind)
				if op.Layer != nil {
					arg("layer", *op.Layer)
				}
				if p.Route != "" {
					arg("route", p.Route)
				}
				arg("workgroups", p.Workgroups[0]*p.Workgroups[1]*p.Workgroups[2])
				arg("workgroups_needed", p.NeededGroups)
				arg("bytes_modelled", p.Bytes)
				arg("flops_modelled", p.FLOPs)
				arg("seq", slice.At)
			}
			event("hw_queue_iid", in.id(t, "gpu_specifications", queue))
			event("stage_iid", in.id(t, "gpu_specifications", stage))
			arg("step", s.Index)
			arg("phase", string(s.Phase))
			if n >= len(events) {
				t.Fatalf("%d GPU events, want more", n)
			}
			if !maps.Equal(events[n], want) {
				t.Fatalf("GPU event %d is\n%v\nwant\n%v", n, events[n], want)
			}
			n++
		}
	}
	if want := exporttest.TotalsOf(tr).Timed; n != len(events) || dispatches != want || want == 0 {
		t.Errorf("%d GPU events, %d of them dispatches; want %d, %d", len(events), dispatches, n, want)
	}
}

func TestProtocDecodesTheHostEvents(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 4)
	packets := decoded(t, tr)
	tracks := having(packets, "track_descriptor")
	for i, want := range []values{
		{"uuid": "1", "process.pid": "1", "process.process_name": "gpuscope", "child_ordering": "3"},
		{
			"uuid": "2", "parent_uuid": "1", "thread.pid": "1", "thread.tid": "1",
			"thread.thread_name": "engine",
		},
		{
			"uuid": "10", "parent_uuid": "1", "name": "device memory, live", "counter.unit": "3",
			"sibling_order_rank": "1",
		},
	} {
		for name, v := range want {
			if got := tracks[i]["track_descriptor."+name]; got != v {
				t.Errorf("track %d: %s is %q, want %q", i, name, got, v)
			}
		}
	}
	var spans, live []values // the events of the thread, without marks, and those of the first counter
	for _, e := range having(packets, "track_event") {
		switch kind := e["track_event.type"]; {
		case e["track_event.track_uuid"] == "2" && (kind == "1" || kind == "2"):
			spans = append(spans, e)
		case e["track_event.track_uuid"] == "10" && kind == "4":
			live = append(live, e)
		}
	}
	next := func(want values) {
		t.Helper()
		if len(spans) == 0 {
			t.Fatalf("no event is left, want %v", want)
		}
		for path, v := range want {
			if spans[0][path] != v {
				t.Fatalf("%s is %q, want %q: %v", path, spans[0][path], v, spans[0])
			}
		}
		spans = spans[1:]
	}
	id := 0
	for s := range timeline.New(analyze.NewIndex(tr)).Steps(0) {
		var ids []string // of the dispatches
		for _, slice := range s.GPU {
			if id++; slice.Kind == timeline.DispatchSlice {
				ids = append(ids, strconv.Itoa(id))
			}
		}
		begin := func(slice timeline.Slice, more values) {
			t.Helper()
			maps.Copy(more, values{
				"timestamp":        strconv.FormatInt(slice.From, 10),
				"track_event.type": "1", "track_event.name": slice.Name,
				"track_event.debug_annotations[dur_ns].int_value": strconv.FormatInt(slice.NS, 10),
				"track_event.debug_annotations[step].int_value":   strconv.Itoa(s.Index),
			})
			next(more)
		}
		end := func(slice timeline.Slice) {
			t.Helper()
			next(values{"timestamp": strconv.FormatInt(slice.To, 10), "track_event.type": "2"})
		}
		begin(s.Host[0], values{
			"track_event.categories":                             "step",
			"track_event.debug_annotations[timing].string_value": string(s.Timing),
			"track_event.debug_annotations[position].int_value":  strconv.Itoa(s.Position),
		})
		for _, slice := range s.Host[1:] {
			if !slice.Drawn() {
				continue
			}
			more := values{"track_event.categories": "host"}
			switch slice.Name {
			case timeline.Submit:
				more["track_event.gpu_correlation.render_stage_submission_event_ids"] = strings.Join(ids, " ")
			case timeline.Wait:
				more["track_event.gpu_correlation.render_stage_wait_event_ids"] = ids[len(ids)-1]
			}
			begin(slice, more)
			end(slice)
		}
		end(s.Host[0])
	}
	if len(spans) > 0 {
		t.Errorf("%d more events: %v", len(spans), spans[0])
	}
	if want := strconv.FormatInt(tr.Steps[0].Memory.LiveBytes, 10); len(live) == 0 ||
		live[0]["track_event.counter_value"] != want {
		t.Errorf("the live bytes are %v, want %s first", live, want)
	}
}
