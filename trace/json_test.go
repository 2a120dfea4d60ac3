package trace_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/internal/printable"
	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// newStream starts a recording to a file.
func newStream(path string, head *trace.Trace) (*trace.StreamWriter, error) {
	w, err := trace.CreateStream(path)
	if err != nil {
		return nil, err
	}
	if err := w.Begin(head); err != nil {
		w.Cancel()
		return nil, err
	}
	return w, nil
}

// written returns a trace as one JSON object.
func written(t testing.TB, tr *trace.Trace) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := trace.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestATraceReadsBackAsItWas(t *testing.T) {
	want := tracetest.Llama(2, 6)
	got, err := trace.Read(bytes.NewReader(written(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFilesReadBackInEveryForm(t *testing.T) {
	want := tracetest.Llama(1, 3)
	for _, name := range []string{"run.json", "run.json.gz", "run.jsonl", "run.jsonl.gz", "no-suffix"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if err := trace.WriteFile(path, want); err != nil {
				t.Fatal(err)
			}
			got, err := trace.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("the folder holds %v, want only the trace", files)
			}
		})
	}
}

func TestUnwritablePathsAreRefusedInOneLine(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		path string
		want error
	}{
		{dir, trace.ErrFolder},
		{filepath.Join(dir, "missing", "run.json"), os.ErrNotExist},
	} {
		_, streamErr := newStream(c.path, tracetest.Llama(1, 1))
		for _, err := range []error{trace.WriteFile(c.path, tracetest.Llama(1, 1)), streamErr} {
			if !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want one line of %v", c.path, err, c.want)
			}
		}
	}
}

func TestAFailedWriteLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	bad := tracetest.Llama(1, 2)
	bad.Steps[1].Sampling = map[string]any{"cannot": func() {}}
	if err := trace.WriteFile(path, bad); err == nil || !strings.Contains(err.Error(), "step 1") {
		t.Fatalf("got %v, want an error that names step 1", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("the file holds %q (%v), want the old content", b, err)
	}
}

func TestWhatIsNoTraceIsRefusedByName(t *testing.T) {
	const step = `{"index":1,"phase":"decode","timing":"off"}`
	golden := wordingtest.New(t)
	for _, c := range []struct{ name, in string }{
		{"empty", ""},
		{"white space", "   \n"},
		{"number too large", `{"schema":"gpuscope.trace/1","host":{"cpus":99999999999999999999}}`},
		{"text", "hello"},
		{"a list", "[]"},
		{"a Chrome trace", `{"traceEvents":[]}`},
		{"other JSON", `{"a":1}`},
		{"other schema", `{"schema":"speedscope/1"}`},
		{"no version", `{"schema":"gpuscope.trace"}`},
		{"newer major", `{"schema":"gpuscope.trace/2","plans":7}`},
		{"cut object", `{"schema":"gpuscope.trace/1","plans":[{"id":0`},
		{"syntax", `{"schema":"gpuscope.trace/1","plans":[}`},
		{"type", `{"schema":"gpuscope.trace/1","plans":[{"id":"x"}]}`},
		{"fractional time", `{"schema":"gpuscope.trace/1","steps":[{"cpu":{"total_ns":1.5}}]}`},
		{"id out of range", `{"schema":"gpuscope.trace/1","plans":[{"id":0,"dispatch":3}]}`},
		{"id not its place", `{"schema":"gpuscope.trace/1","graph":{"ops":[{"id":1}]}}`},
		{"bytes", `{"schema":"gpuscope.trace/1","graph":{"values":[{"id":0,"kind":"tensor","role":"state","bytes":4611686018427387904}]}}`},
		{
			"recurrent value that is no state",
			`{"schema":"gpuscope.trace/1","graph":{"values":[{"id":0,"kind":"tensor","role":"input","recurrent":true,"max_dims":[2]}]}}`,
		},
		{
			"recurrent state without slots",
			`{"schema":"gpuscope.trace/1","graph":{"values":[{"id":0,"kind":"tensor","role":"state","recurrent":true}]}}`,
		},
		{
			"kernels and what they are bound to",
			`{"schema":"gpuscope.trace/1","graph":{"ops":[{"id":0}],"dispatches":[{"id":0,"op":0,"kernels":["a"],"bound":[[],[]]}]}}`,
		},
		{
			"grid",
			`{"schema":"gpuscope.trace/1","graph":{"ops":[{"id":0}],"dispatches":[{"id":0,"op":0,"max_workgroups":[4611686018427387904,9,9]}]}}`,
		},
		{"position", `{"schema":"gpuscope.trace/1","steps":[{"index":0,"position":3000000000}]}`},
		{"position below 0", `{"schema":"gpuscope.trace/1","steps":[{"index":0,"position":-1}]}`},
		{
			"long name",
			`{"schema":"gpuscope.trace/1","graph":{"ops":[{"name":"` + strings.Repeat("é\\u001b", 1<<16) + `"}]}}`,
		},
		{
			"long word",
			`{"schema":"gpuscope.trace/1","steps":[{"phase":"` + strings.Repeat("x", 1<<16) + `"}]}`,
		},
		{
			"many dims", `{"schema":"gpuscope.trace/1","graph":{"values":[{"kind":"tensor","role":"input",` +
				`"max_dims":[-1` + strings.Repeat(",-1", 1<<17) + `]}]}}`,
		},
		{"long key", `{"schema":"gpuscope.trace/1","` + strings.Repeat("k", 1<<16) + `":}`},
		{"huge number", `{"schema":"gpuscope.trace/1","steps":[{"index":1` + strings.Repeat("0", 1<<16) + `}]}`},
		{"NaN", `{"schema":"gpuscope.trace/1","steps":[{"index":NaN}]}`},
		{"a key twice", `{"schema":"gpuscope.trace/1","model":{},"model":{}}`},
		{"steps twice", `{"schema":"gpuscope.trace/1","steps":[` + step + `],"steps":[` + step + `]}`},
		{"gzip in gzip", "\x1f\x8b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := trace.Read(strings.NewReader(c.in))
			golden.Error(c.name, err)
			if n := len(fmt.Sprint(err)); n > 320 || printable.Clean(fmt.Sprint(err)) != fmt.Sprint(err) {
				t.Errorf("%d bytes of error, want a short line: %.400q", n, err)
			}
		})
	}
}

func TestUnknownFieldsOfMinorVersionsAreKept(t *testing.T) {
	tr := tracetest.Llama(1, 2)
	in := string(written(t, tr))
	for _, add := range []struct{ at, with string }{
		{`"schema":"gpuscope.trace/1.1"`, `"schema":"gpuscope.trace/1.3","future":{"a":[1.50,{"b":"</x>"}]}`},
		{`"backend":"vulkan"`, `"backend":"vulkan","power/limit~w":700`},
		{`"plans":[` + "\n{", `"plans":[` + "\n" + `{"new_in_plan":12345678901234567890123,`},
		{`"steps":[` + "\n{", `"steps":[` + "\n" + `{"new_in_step":null,`},
		{`"logit":11.25`, `"logit":11.25,"rank":1`},
	} {
		if !strings.Contains(in, add.at) {
			t.Fatalf("no %s in the trace", add.at)
		}
		in = strings.Replace(in, add.at, add.with, 1)
	}
	var want any
	if err := json.Unmarshal([]byte(in), &want); err != nil {
		t.Fatal(err)
	}
	for _, form := range []struct {
		name  string
		write func(io.Writer, *trace.Trace) error
	}{{"object", trace.Write}, {"stream", trace.WriteStream}} {
		t.Run(form.name, func(t *testing.T) {
			got, err := trace.Read(strings.NewReader(in))
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := form.write(&b, got); err != nil {
				t.Fatal(err)
			}
			again, err := trace.Read(&b)
			if err != nil {
				t.Fatal(err)
			}
			out := written(t, again)
			if !bytes.Contains(out, []byte("12345678901234567890123")) {
				t.Error("the digits of a large number were lost")
			}
			var have any
			if err := json.Unmarshal(out, &have); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, have); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAStreamCutAnywhereOpens(t *testing.T) {
	tr := tracetest.Llama(1, 4)
	var b bytes.Buffer
	if err := trace.WriteStream(&b, tr); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	head := bytes.IndexByte(whole, '\n')
	if _, err := trace.Read(bytes.NewReader(whole[:head-1])); !errors.Is(err, trace.ErrTruncated) {
		t.Errorf("cut in the first line: %v, want ErrTruncated", err)
	}
	for n := head; n < len(whole); n += 997 {
		got, err := trace.Read(bytes.NewReader(whole[:n]))
		if err != nil {
			t.Fatalf("cut at byte %d: %v", n, err)
		}
		steps := bytes.Count(whole[:n], []byte("\n{\"step\""))
		if len(got.Steps) != steps && len(got.Steps) != steps-1 {
			t.Fatalf("cut at byte %d: %d steps, want those of %d lines", n, len(got.Steps), steps)
		}
		last := whole[n-1]
		partial := last != '\n' && !json.Valid(whole[bytes.LastIndexByte(whole[:n], '\n')+1:n])
		if said := len(got.Events) > 0 && got.Events[len(got.Events)-1].Kind == "cut"; said != partial {
			t.Fatalf("cut at byte %d: reported %v, want %v", n, said, partial)
		}
	}
}

func TestACutGzipStreamOpens(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := trace.WriteStream(z, tracetest.Llama(1, 4)); err != nil {
		t.Fatal(err)
	}
	if err := z.Flush(); err != nil { // the program dies here
		t.Fatal(err)
	}
	got, err := trace.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Steps) != 4 {
		t.Errorf("%d steps, want 4", len(got.Steps))
	}
	if e := got.Events[len(got.Events)-1]; e.Kind != trace.EventCut {
		t.Errorf("a cut between records is reported as %q", e.Text)
	}
}

// The error gives the offset in the decompressed data, which differs from the offset in the gzip file.
func TestGzipErrorsGiveUnpackedOffsets(t *testing.T) {
	zipped := func(text []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var b bytes.Buffer
	if err := trace.Write(&b, tracetest.Llama(1, 4)); err != nil {
		t.Fatal(err)
	}
	whole := zipped(b.Bytes())
	_, err := trace.Read(bytes.NewReader(whole[:len(whole)/2]))
	if !errors.Is(err, trace.ErrTruncated) {
		t.Fatalf("half of a file: %v, want ErrTruncated", err)
	}
	// Where the end is depends on the version of the compressor.
	number := regexp.MustCompile(`\d+`)
	if at, _ := strconv.Atoi(number.FindString(err.Error())); at <= len(whole) || at >= b.Len() {
		t.Errorf("%v: want an offset from %d to %d", err, len(whole), b.Len())
	}
	golden := wordingtest.New(t)
	golden.Text("half", number.ReplaceAllString(err.Error(), "N"))
	if _, err = trace.Read(bytes.NewReader(whole[:10])); !errors.Is(err, trace.ErrTruncated) {
		t.Errorf("10 bytes of a file: %v, want ErrTruncated", err)
	}
	golden.Error("10 bytes", err)
	_, err = trace.Read(bytes.NewReader(zipped([]byte(`{"schema":"gpuscope.trace/1","plans":[}`))))
	golden.Error("syntax", err)
}

func TestStreamWriterLeavesTheSameTrace(t *testing.T) {
	want := tracetest.Llama(2, 5)
	want.Events = []trace.Event{{Step: 2, Kind: "note", Text: "here"}}
	for _, name := range []string{"run.json", "run.jsonl", "run.json.gz", "run.jsonl.gz", "run.jsonl.zst"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			head := *want
			head.Plans, head.Steps, head.Events, head.Observer = nil, nil, nil, nil
			w, err := newStream(filepath.Join(dir, name), &head)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Cancel()
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Error("the file exists before Close")
			}
			last := len(want.Steps) - 1
			for i := range want.Plans {
				write(t, w, trace.Record{Plan: &want.Plans[i]})
			}
			for i := range want.Steps {
				s := want.Steps[i]
				s.Dispatches = append([]trace.StepDispatch{}, s.Dispatches...)
				for j := range s.Dispatches {
					s.Dispatches[j].Samples = nil
				}
				write(t, w, trace.Record{Step: &s})
			}
			samples := trace.Samples{Step: last}
			for _, d := range want.Steps[last].Dispatches {
				samples.Samples = append(samples.Samples, d.Samples)
			}
			write(t, w, trace.Record{Samples: &samples})
			write(t, w, trace.Record{Event: &want.Events[0]})
			write(t, w, trace.Record{Observer: want.Observer})
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := trace.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("the folder holds %v, want only the trace", files)
			}
		})
	}
}

func write(t *testing.T, w *trace.StreamWriter, r trace.Record) {
	t.Helper()
	if err := w.Write(r); err != nil {
		t.Fatal(err)
	}
}

func TestStreamWriterCancelLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"run.json", "run.jsonl"} {
		w, err := newStream(filepath.Join(dir, name), tracetest.Llama(1, 2))
		if err != nil {
			t.Fatal(err)
		}
		w.Cancel()
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("the folder holds %v, want nothing", files)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, tracetest.Tiny()))
	var stream bytes.Buffer
	if err := trace.WriteStream(&stream, tracetest.Tiny()); err != nil {
		f.Fatal(err)
	}
	f.Add(stream.Bytes())
	f.Add([]byte(`{"schema":"gpuscope.trace/1","x":1}{"samples":{"step":0,"samples":[]}}`))
	for _, s := range []string{
		`{"schema":"gpuscope.trace/1","steps":[{"index":9223372036854775807,"position":2147483647}]}`,
		`{"schema":"gpuscope.trace/1","plans":[{}],"plans":[{}],"steps":null}`,
		`{"schema":"gpuscope.trace/1","graph":{"values":[{"max_dims":[-1,9223372036854775807]}]}}`,
		`{"schema":"gpuscope.trace/1","steps":[{"resize":{"passes":[{"hooks":[{"plans":[{}]}]}]}}]}`,
		"{\"schema\":\"gpuscope.trace/1\",\"model\":{\"name\":\"\u009b2J\\u001b]52;c;aGk=\\u0007\"}}",
		"{\"schema\":\"gpuscope.trace/1\"}\n{\"event\":{\"z\":[[[[]]]]}}\n{\"new\":{}} \n\t {\"step\":{",
		"{\"schema\" :\"gpuscope.trace/1\",\"x\":\"\\\"  \\\\\" , \"y\":[1 ,\r\n2]}",
		"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := trace.Read(bytes.NewReader(b))
		if err != nil {
			if s := err.Error(); utf8.RuneCountInString(s) > 300 || printable.Clean(s) != s {
				t.Fatalf("an error that cannot be shown: %q", s)
			}
			return
		}
		// An accepted trace can be written and read again.
		var out bytes.Buffer
		if err := trace.Write(&out, tr); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.Read(&out); err != nil {
			t.Fatalf("the written trace cannot be read: %v", err)
		}
	})
}

var nan, inf = math.NaN(), math.Inf(1)

func TestNumbersThatAreNotFiniteReadBack(t *testing.T) {
	want := tracetest.Tiny()
	want.Steps[1].Top[0].Logit, want.Steps[1].Top[1].P = nan, inf
	want.Steps[1].Dispatches[0].Error = &trace.NumericError{
		MaxAbs: trace.Number(inf), MSE: trace.Number(nan), SNRdB: trace.Number(-inf),
		Reference: "float64",
	}
	got, err := trace.Read(bytes.NewReader(written(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	// EquateNaNs only handles float64.
	same := cmp.Comparer(func(a, b trace.Number) bool { return a == b || a != a && b != b })
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), same); d != "" {
		t.Error(d)
	}
}
