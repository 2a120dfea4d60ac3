// Package otlp writes a trace in the JSON encoding of OpenTelemetry's protocol (OTLP): as spans for trace
// back ends, and as profiles for profile back ends. A file is one object on one line, which is both the body
// of a request to a collector and a line of a collector's JSON file. Fields that OpenTelemetry does not
// define are named gpuscope.*.
//
// Layouts: opentelemetry-proto, trace/v1/trace.proto and profiles/v1development/profiles.proto. Ids are
// hexadecimal, and 64-bit integers are strings.
package otlp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"time"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/export/jsonstream"
)

// Traces is the export "otlp".
var Traces = trace.Export{
	Name: "otlp", Doc: "OTLP/JSON spans: run, steps, host phases, operators, dispatches",
	Suffix: ".otlp.json", Write: writeTraces,
}

// Profiles is the export "otlp-profiles".
var Profiles = trace.Export{
	Name: "otlp-profiles", Doc: "OTLP/JSON profiles: same values as in format pprof, linked to the spans of format otlp",
	Suffix: ".otlp-profiles.json", Write: writeProfiles,
}

// schemaURL names the version of the conventions for the attributes that OpenTelemetry defines.
const schemaURL = "https://opentelemetry.io/schemas/1.37.0"

// ids derives the ids of a run from the run itself. Both formats therefore use the same ids, and exporting a
// trace twice gives the same file.
type ids struct {
	trace [16]byte
	seed  uint64
}

func idsOf(t *trace.Trace) ids {
	sum := sha256.Sum256([]byte("gpuscope\x00" + t.Created + "\x00" + t.Model.Name + "\x00" + t.Device.Name))
	r := ids{seed: binary.LittleEndian.Uint64(sum[16:])}
	copy(r.trace[:], sum[:])
	return r
}

// span returns the id of span n of the run. Different spans have different ids, because mixing is reversible
// (the finalizer of SplitMix64). An id must not be 0.
func (r ids) span(n uint64) string {
	x := r.seed + n
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], max(x, 1))
	return hex.EncodeToString(b[:])
}

// The run is span 0. The step at index i is span (i+1)<<32, and the spans inside the step follow it.
func (r ids) step(i int) string { return r.span(stepNumber(i)) }

func stepNumber(i int) uint64 { return uint64(i+1) << 32 }

// writer writes OTLP/JSON.
type writer struct {
	*jsonstream.Writer
	t    *trace.Trace
	line *timeline.Timeline
	ids  ids
	id   string // OpenTelemetry's trace id of the run, in hexadecimal
	base int64  // time of the start of the axis, in ns since 1970
}

func newWriter(out io.Writer, t *trace.Trace) *writer {
	w := &writer{
		Writer: jsonstream.New(out), t: t, line: timeline.New(analyze.NewIndex(t)), ids: idsOf(t),
	}
	w.id = hex.EncodeToString(w.ids.trace[:])
	// UnixNano is defined from 1678 to 2262. Times before 1970 cannot be written.
	if created, err := time.Parse(time.RFC3339, t.Created); err == nil {
		if s := created.Unix(); s > 0 && s < 1<<33 {
			w.base = created.UnixNano()
		}
	}
	return w
}

// begin writes the beginning of a file up to the list of spans or profiles. kind is "Spans" or "Profiles".
func (w *writer) begin(kind, list string) {
	w.Object()
	w.Key("resource" + kind)
	w.Array()
	w.Object()
	w.Key("resource")
	w.Object()
	w.attributes(func() {
		w.text("service.name", "gpuscope")
		w.text("service.version", w.t.Producer.Version)
		w.text("os.type", w.t.Host.OS)
		w.text("host.arch", w.t.Host.Arch)
		w.text("gpuscope.device.name", w.t.Device.Name)
		w.text("gpuscope.device.backend", w.t.Device.Backend)
		w.text("gpuscope.device.driver", w.t.Device.Driver)
		w.text("gpuscope.engine", w.t.Engine)
	})
	w.EndObject()
	w.Key("scope" + kind)
	w.Array()
	w.Object()
	w.Key("scope")
	w.Object()
	w.StringMember("name", "gpuscope")
	w.StringMember("version", w.t.Producer.Version)
	w.EndObject()
	w.Key(list)
	w.Array()
}

// end ends what begin began, except the file's object.
func (w *writer) end() {
	w.EndArray()
	w.EndObject()
	w.EndArray()
	w.StringMember("schemaUrl", schemaURL)
	w.EndObject()
	w.EndArray()
}

// attributes writes a list of attributes.
func (w *writer) attributes(list func()) {
	w.Key("attributes")
	w.Array()
	list()
	w.EndArray()
}

// text writes an attribute, unless its value is empty.
func (w *writer) text(key, value string) {
	if value != "" {
		w.attribute(key, "stringValue")
		w.String(value)
		w.endAttribute()
	}
}

func (w *writer) number(key string, value int64) {
	w.attribute(key, "intValue")
	w.IntString(value)
	w.endAttribute()
}

// measured writes a time in ns as an attribute, unless it was not measured.
func (w *writer) measured(key string, value trace.Time) {
	if ns, ok := value.NS(); ok {
		w.number(key, ns)
	}
}

func (w *writer) flag(key string, value bool) {
	w.attribute(key, "boolValue")
	w.Bool(value)
	w.endAttribute()
}

func (w *writer) attribute(key, typ string) {
	w.Object()
	w.StringMember("key", key)
	w.Key("value")
	w.Object()
	w.Key(typ)
}

func (w *writer) endAttribute() {
	w.EndObject()
	w.EndObject()
}

// instant writes a member with a time on the axis.
func (w *writer) instant(key string, at int64) {
	w.Key(key)
	w.IntString(analyze.Add(w.base, at))
}
