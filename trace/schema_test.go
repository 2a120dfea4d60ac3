package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// docs is the folder of the reference documentation.
var docs = filepath.Join("..", "docs", "reference")

const schemaFile = "gpuscope.trace-1.schema.json"

// schema holds those parts of a JSON Schema that our schema uses.
type schema struct {
	Description string             `json:"description"`
	Type        string             `json:"type"`
	Ref         string             `json:"$ref"`
	Enum        []string           `json:"enum"`
	Required    []string           `json:"required"`
	Properties  fields             `json:"properties"`
	Items       *schema            `json:"items"`
	MinItems    int                `json:"minItems"`
	Additional  *schema            `json:"additionalProperties"`
	Defs        map[string]*schema `json:"$defs"`
}

// fields holds properties in the order of the file.
type fields struct {
	names []string
	of    map[string]*schema
}

func (f *fields) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &f.of); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return nil
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if _, ok := f.of[t]; ok && depth == 1 {
				f.names = append(f.names, t)
			}
		}
	}
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(docs, schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func texts[S ~string](list []S) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = string(s)
	}
	return all
}

// words lists the string fields that accept only certain words, by Go type and field.
var words = map[string][]string{
	"Value.kind": trace.ValueKinds, "Value.role": texts(trace.Roles), "Step.phase": texts(trace.Phases),
	"Step.timing": texts(trace.TimingLevels), "Resize.order": trace.Orders,
	"Dispatch.joined": texts(trace.Joins),
	"Line.along":      trace.Axes, "Wait.kind": trace.Hazards, "Grid.rule": trace.GridRules,
}

func TestSchemaHasExactlyTheFieldsOfGoTypes(t *testing.T) {
	root := readSchema(t)
	done := map[string]bool{}
	var object func(name string, s *schema, typ reflect.Type)
	var value func(at string, s *schema, typ reflect.Type)
	object = func(name string, s *schema, typ reflect.Type) {
		if done[name] {
			return
		}
		done[name] = true
		if s == nil {
			t.Errorf("the schema has no %s", name)
			return
		}
		var names, required []string
		for i := range typ.NumField() {
			tag, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if tag == "" || tag == "-" {
				continue
			}
			names = append(names, tag)
			if options == "" {
				required = append(required, tag)
			}
			if p := s.Properties.of[tag]; p != nil {
				value(name+"."+tag, p, typ.Field(i).Type)
			}
		}
		if d := cmp.Diff(names, s.Properties.names); d != "" {
			t.Errorf("%s: fields of the Go type (-) and the schema (+):\n%s", name, d)
		}
		if d := cmp.Diff(required, s.Required); d != "" {
			t.Errorf("%s: fields that are always written (-) and required (+):\n%s", name, d)
		}
		if s.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	value = func(at string, s *schema, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		want := ""
		switch {
		case words[at] != nil:
			if d := cmp.Diff(words[at], s.Enum); d != "" {
				t.Errorf("%s: words of the Go type (-) and the schema (+):\n%s", at, d)
			}
			return
		case typ == reflect.TypeFor[trace.Time]():
			want = "#/$defs/Time"
		case typ.Kind() == reflect.Struct:
			want = "#/$defs/" + typ.Name()
			object(typ.Name(), root.Defs[typ.Name()], typ)
		case typ.PkgPath() != "" && typ.Kind() != reflect.String: // an id, or a rule
			want = "#/$defs/" + typ.Name()
			if root.Defs[typ.Name()] == nil {
				t.Errorf("the schema has no %s", typ.Name())
			}
		case typ.Kind() == reflect.Slice, typ.Kind() == reflect.Array:
			want = "array"
			if s.Items == nil {
				t.Errorf("%s: the schema has no items", at)
				return
			}
			value(at+"[]", s.Items, typ.Elem())
			if typ.Kind() == reflect.Array && s.MinItems != typ.Len() {
				t.Errorf("%s: the schema has %d items, want %d", at, s.MinItems, typ.Len())
			}
		case typ.Kind() == reflect.Map:
			want = "object"
			if typ.Elem().Kind() != reflect.Interface {
				value(at+"{}", s.Additional, typ.Elem())
			}
		case typ.Kind() == reflect.String:
			want = "string"
		case typ.Kind() == reflect.Bool:
			want = "boolean"
		case typ.Kind() == reflect.Float64:
			want = "number"
		default:
			want = "integer"
		}
		got := s.Ref + s.Type
		if got != want && (want != "number" || got != "#/$defs/Number") {
			t.Errorf("%s: the schema says %s, want %s", at, got, want)
		}
		if s.Description == "" && !strings.HasSuffix(at, "]") && !strings.HasSuffix(at, "}") {
			t.Errorf("%s has no description", at)
		}
	}
	object("Trace", root, reflect.TypeFor[trace.Trace]())
	object("Record", root.Defs["Record"], reflect.TypeFor[trace.Record]())
	for name := range root.Defs {
		if !done[name] &&
			!slices.Contains([]string{
				"Time", "Tick", "Number", "Rule", "ValueID", "SymIntID", "OpID", "DispatchID",
				"PlanID",
			}, name) {
			t.Errorf("the schema defines %s, but no Go type has this name", name)
		}
	}
}

// compiled compiles the schema, or a part of it.
func compiled(t *testing.T, part string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join(docs, schemaFile) + part)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, b []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v\nin %.200s", err, b)
	}
}

func TestExportsAreValid(t *testing.T) {
	bare := &trace.Trace{Schema: trace.Schema}
	wild := tracetest.Tiny()
	wild.Steps[1].Top[0].Logit = nan
	wild.Steps[1].Dispatches[0].Error = &trace.NumericError{
		MaxAbs: trace.Number(inf), MSE: trace.Number(nan), SNRdB: trace.Number(-inf),
		Reference: "float64",
	}
	for name, tr := range map[string]*trace.Trace{
		"llama": tracetest.Llama(2, 4), "run": tracetest.Run(1, 40, 1, 7, 1), "tiny": tracetest.Tiny(),
		"bare": bare, "not finite": wild,
	} {
		t.Run(name, func(t *testing.T) {
			validate(t, compiled(t, ""), written(t, tr))
			var b bytes.Buffer
			if err := trace.WriteStream(&b, tr); err != nil {
				t.Fatal(err)
			}
			for i, line := range bytes.Split(bytes.TrimSpace(b.Bytes()), []byte("\n")) {
				if i == 0 {
					validate(t, compiled(t, ""), line)
				} else if i < 50 {
					validate(t, compiled(t, "#/$defs/Record"), line)
				}
			}
		})
	}
}

func TestSchemaRefusesWhatIsWrong(t *testing.T) {
	s := compiled(t, "")
	good := string(written(t, tracetest.Tiny()))
	for _, c := range []struct{ from, to string }{
		{`"gpuscope.trace/1.1"`, `"gpuscope.trace/2"`},
		{`"phase":"decode"`, `"phase":"decoding"`},
		{`"gpu_ns":14112`, `"gpu_ns":"14112"`},
		{`"workgroups":[3,1,1]`, `"workgroups":[3,1]`},
		{`"dispatch":0`, `"dispatch":-1`},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(good, c.from, c.to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if s.Validate(v) == nil || !strings.Contains(good, c.from) {
			t.Errorf("%s in place of %s was accepted", c.to, c.from)
		}
	}
}

// TestTraceFormatPageIsFresh checks the generated parts of docs/reference/trace-format.md: the example, and
// the tables with the fields of every object in the schema.
func TestTraceFormatPageIsFresh(t *testing.T) {
	path := filepath.Join(docs, "trace-format.md")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(old)
	for _, part := range []struct{ name, text string }{
		{"example", example(t)},
		{"fields", fieldTables(readSchema(t))},
	} {
		begin, end := fmt.Sprintf("<!-- %s: made by `go test ./trace -update` -->\n", part.name),
			fmt.Sprintf("<!-- end of %s -->", part.name)
		before, rest, ok1 := strings.Cut(page, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("%s has no markers for its %s", path, part.name)
		}
		page = before + begin + "\n" + part.text + "\n" + end + after
	}
	if page == string(old) {
		return
	}
	if !wordingtest.Updating() {
		t.Fatalf("%s does not match the schema and the example: run go test ./trace -update\n%s", path,
			cmp.Diff(string(old), page))
	}
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// notes are printed above the lines of the example. Each note belongs to the line that begins with at.
var notes = []struct{ at, note string }{
	{`{"schema"`, "name and version of the format"},
	{`"device"`, "measured performance limits; a limit that was not measured is absent"},
	{`"clock"`, "one tick of the GPU clock is 1 ns; the timer resolution is 32 ns"},
	{`"graph"`, "one operator normalizes x and writes y; it has one dispatch slot; every id is an index"},
	{`"plans"`, "three rows need three workgroups; in each workgroup 4 of 64 lanes have work"},
	{`{"id":1,"dispatch":0`, "one row: a different grid and different params"},
	{`"steps"`, "the prefill is cold because it compiled the kernel; raw ticks are strings"},
	{
		`{"index":1`,
		"the decode step: resize lists the old and the new plan; samples holds three repeats; costs holds the saving without the dispatch",
	},
}

// example returns a small trace, line by line, with notes.
func example(t *testing.T) string {
	var b strings.Builder
	b.WriteString("```jsonc\n")
	next := 0
	for line := range strings.Lines(string(written(t, tracetest.Tiny()))) {
		if next < len(notes) && strings.HasPrefix(line, notes[next].at) {
			fmt.Fprintf(&b, "// %s\n", notes[next].note)
			next++
		}
		if line == "\"steps\":[\n" || line == "\"plans\":[\n" {
			b.WriteString(line)
			continue
		}
		b.WriteString(wrapped(line))
	}
	if next < len(notes) {
		t.Errorf("no line of the example begins with %s", notes[next].at)
	}
	b.WriteString("```\n")
	return b.String()
}

// wrapped breaks a long line of JSON after commas.
func wrapped(line string) string {
	const width = 140
	var b strings.Builder
	used := 0
	for _, piece := range strings.SplitAfter(strings.TrimSuffix(line, "\n"), ",") {
		if used > 0 && used+len(piece) > width {
			b.WriteString("\n  ")
			used = 2
		}
		b.WriteString(piece)
		used += len(piece)
	}
	b.WriteString("\n")
	return b.String()
}

// fieldTables returns a table of fields for every object in the schema.
func fieldTables(root *schema) string {
	var b strings.Builder
	var order []string
	seen := map[string]bool{}
	var visit func(s *schema)
	visit = func(s *schema) {
		for s.Items != nil {
			s = s.Items
		}
		name, ok := strings.CutPrefix(s.Ref, "#/$defs/")
		if !ok || seen[name] || len(root.Defs[name].Properties.names) == 0 && name != "Rule" {
			return
		}
		seen[name] = true
		order = append(order, name)
		for _, f := range root.Defs[name].Properties.names {
			visit(root.Defs[name].Properties.of[f])
		}
	}
	table := func(name string, s *schema) {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", name, s.Description)
		if len(s.Properties.names) == 0 {
			return
		}
		b.WriteString("| field | type | |\n| --- | --- | --- |\n")
		for _, f := range s.Properties.names {
			p := s.Properties.of[f]
			title := "`" + f + "`"
			if !slices.Contains(s.Required, f) {
				title += " ?"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", title, typeText(p), p.Description)
		}
		b.WriteString("\n")
	}
	table("Trace", root)
	for _, f := range root.Properties.names {
		visit(root.Properties.of[f])
	}
	visit(&schema{Ref: "#/$defs/Record"})
	for _, name := range order {
		table(name, root.Defs[name])
	}
	return b.String()
}

// typeText describes a type for readers of the page.
func typeText(s *schema) string {
	name, isRef := strings.CutPrefix(s.Ref, "#/$defs/")
	switch {
	case s.Items != nil && s.MinItems > 0:
		return fmt.Sprintf("%d × %s", s.MinItems, typeText(s.Items))
	case s.Items != nil:
		return "list of " + typeText(s.Items)
	case len(s.Enum) > 0:
		return strings.Trim(strings.ReplaceAll(fmt.Sprintf("%q", s.Enum), `" "`, `", "`), "[]")
	case isRef && name == "Time":
		return "ns"
	case isRef && name == "Tick":
		return "string"
	case isRef && strings.HasSuffix(name, "ID"):
		return "id of a " +
			map[string]string{
				"ValueID": "value", "SymIntID": "SymInt", "OpID": "op",
				"DispatchID": "dispatch", "PlanID": "plan",
			}[name]
	case isRef && name == "Number":
		return "number"
	case isRef:
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	case s.Type == "object" && s.Additional != nil:
		return "name → " + typeText(s.Additional)
	}
	return s.Type
}
