package otlp

import (
	"encoding/hex"
	"io"

	"gpuscope/trace"
	"gpuscope/trace/export/samples"
)

// writeProfiles writes a profile for each type of value: numbers of dispatches, of workgroups, and of
// workgroups without work, and GPU time. A profile has a sample for each dispatch whose value was measured
// and, for counts, is not 0. A trace without GPU times has no profile of GPU times. Each sample is linked to
// the span of its step in the export "otlp".
func writeProfiles(out io.Writer, t *trace.Trace) error {
	w := &profiles{
		writer: newWriter(out, t), from: samples.Of(t), strings: map[string]int{"": 0}, texts: []string{""},
		phase: map[trace.Phase]int{},
	}
	for i := range t.Steps { // attributes: first the phases, then the step numbers
		if p := t.Steps[i].Phase; w.phase[p] == 0 {
			w.phases = append(w.phases, p)
			w.phase[p] = len(w.phases)
		}
	}
	w.begin("Profiles", "profiles")
	for i, typ := range samples.Types {
		if i != samples.GPUTime || w.from.Timed {
			w.profile(i, typ)
		}
	}
	w.end()
	w.Key("dictionary")
	w.dictionary()
	w.EndObject()
	return w.Flush()
}

type profiles struct {
	*writer
	from    *samples.Profile
	strings map[string]int // index of each string in texts
	texts   []string
	phases  []trace.Phase
	phase   map[trace.Phase]int // index of each phase in the table of attributes
}

// str returns the index of a string.
func (w *profiles) str(s string) int64 {
	n, found := w.strings[s]
	if !found {
		n = len(w.texts)
		w.strings[s] = n
		w.texts = append(w.texts, s)
	}
	return int64(n)
}

// profile writes the profile of a type of value.
func (w *profiles) profile(which int, typ samples.Type) {
	w.Object()
	w.Key("sampleType")
	w.Object()
	w.IntMember("typeStrindex", w.str(typ.Name))
	w.IntMember("unitStrindex", w.str(typ.Unit))
	w.EndObject()
	w.instant("timeUnixNano", 0)
	w.Key("durationNano")
	w.IntString(w.line.End)
	id := w.ids.trace
	id[len(id)-1] ^= byte(which + 1)
	w.StringMember("profileId", hex.EncodeToString(id[:]))
	w.Key("samples")
	w.Array()
	for i := range w.t.Steps {
		phase := w.phase[w.t.Steps[i].Phase]
		for s := range w.from.Step(i) {
			values, measured := s.Values()
			if which == samples.GPUTime && !measured || which != samples.GPUTime && values[which] == 0 {
				continue
			}
			w.Object()
			w.IntMember("stackIndex", int64(s.Stack+1))
			w.IntsMember("attributeIndices", phase, len(w.phases)+i+1)
			w.IntMember("linkIndex", int64(i+1))
			w.Key("values")
			w.Array()
			w.IntString(values[which])
			w.EndArray()
			w.EndObject()
		}
		if w.Err() != nil {
			break
		}
	}
	w.EndArray()
	w.EndObject()
}

// dictionary writes the tables to which the profiles refer. The first entry of each table is empty.
func (w *profiles) dictionary() {
	w.Object()
	w.table("mappingTable", 1, func(int) { // the model
		w.IntMember("filenameStrindex", w.str(w.t.Model.Name))
	})
	w.table("functionTable", len(w.from.Functions), func(i int) {
		f := &w.from.Functions[i]
		w.IntMember("nameStrindex", w.str(f.Name))
		if f.File != "" {
			w.IntMember("filenameStrindex", w.str(f.File))
		}
		if f.Line > 0 {
			w.Key("startLine")
			w.IntString(f.Line)
		}
	})
	w.table("locationTable", len(w.from.Functions), func(i int) {
		w.IntMember("mappingIndex", 1)
		w.Key("lines")
		w.Array()
		w.Object()
		w.IntMember("functionIndex", int64(i+1))
		if line := w.from.Functions[i].Line; line > 0 {
			w.Key("line")
			w.IntString(line)
		}
		w.EndObject()
		w.EndArray()
	})
	w.table("stackTable", len(w.from.Stacks), func(i int) {
		w.Key("locationIndices")
		w.Array()
		for _, f := range w.from.Stacks[i] {
			w.Int(int64(f + 1))
		}
		w.EndArray()
	})
	w.table("linkTable", len(w.t.Steps), func(i int) {
		w.StringMember("traceId", w.id)
		w.StringMember("spanId", w.ids.step(i))
	})
	w.table("attributeTable", len(w.phases)+len(w.t.Steps), func(i int) {
		key, typ := "gpuscope.phase", "stringValue"
		if i >= len(w.phases) {
			key, typ = "gpuscope.step", "intValue"
		}
		w.IntMember("keyStrindex", w.str(key))
		w.Key("value")
		w.Object()
		w.Key(typ)
		if i < len(w.phases) {
			w.String(string(w.phases[i]))
		} else {
			w.IntString(int64(w.t.Steps[i-len(w.phases)].Index))
		}
		w.EndObject()
	})
	w.Key("stringTable")
	w.Array()
	for _, s := range w.texts {
		w.String(s)
	}
	w.EndArray()
	w.EndObject()
}

// table writes a table with an empty entry and n more.
func (w *profiles) table(name string, n int, entry func(i int)) {
	w.Key(name)
	w.Array()
	w.Object()
	w.EndObject()
	for i := range n {
		w.Object()
		entry(i)
		w.EndObject()
	}
	w.EndArray()
}
