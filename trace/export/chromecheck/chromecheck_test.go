package chromecheck_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"gpuscope/internal/compress"
	"gpuscope/trace"
	"gpuscope/trace/export/chromecheck"
)

// check returns the rules that a file breaks, with the numbers of the events.
func check(t testing.TB, file string) (broken []string, sum chromecheck.Summary) {
	t.Helper()
	sum, err := chromecheck.Check(iotest.HalfReader(strings.NewReader(file)), func(v chromecheck.Violation) {
		broken = append(broken, fmt.Sprintf("%s %d", v.Rule, v.Event))
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Violations != len(broken) {
		t.Errorf("%d violations are counted, %d are reported", sum.Violations, len(broken))
	}
	return broken, sum
}

// x returns a slice of thread 1.
func x(ts, dur string) string {
	return `{"ph":"X","cat":"c","name":"n","pid":1,"tid":1,"ts":` + ts + `,"dur":` + dur + `}`
}

// with returns a slice with a member replaced, or left out if the new one is empty.
func with(old, new string) string {
	s := x("1.000", "5.000")
	if !strings.Contains(s, old) {
		panic(old)
	}
	return strings.Replace(s, old, new, 1)
}

func flow(ph, id, ts, more string) string {
	return `{"ph":"` + ph + `","cat":"a","name":"b","pid":1,"tid":1,"id":` + id + `,"ts":` + ts + more + `}`
}

const end = `,"bp":"e"`

func TestBrokenRulesAreReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []string
		want   []string
	}{
		"nothing":            {[]string{x("1", "2.5"), x("1.000", "2.499"), x("3.501", "1")}, nil},
		"string ts":          {[]string{x(`"1"`, "2")}, []string{"time 0"}},
		"4 decimals":         {[]string{x("1.0001", "2")}, []string{"time 0"}},
		"exponent":           {[]string{x("1", "2e3")}, []string{"time 0"}},
		"since 1970":         {[]string{x("1795000000000000.123", "2")}, []string{"time 0"}},
		"equal ends":         {[]string{x("0", "0.3"), x("0.1", "0.2")}, []string{"nesting 1"}},
		"abutting":           {[]string{x("0.1", "0.2"), x("0.3", "0.1")}, []string{"nesting 1"}},
		"overlap, unsorted":  {[]string{x("5", "10"), x("0", "10")}, []string{"nesting 0"}},
		"same start and end": {[]string{x("5", "10"), x("5", "10")}, []string{"nesting 1"}},
		"no duration":        {[]string{x("5", "0")}, []string{"length 0"}},
		"negative duration":  {[]string{x("5", "-1.000")}, []string{"length 0"}},
		"tid 0":              {[]string{with(`"tid":1`, `"tid":0`)}, []string{"id 0"}},
		"negative pid":       {[]string{with(`"pid":1`, `"pid":-1`)}, []string{"id 0"}},
		"string pid":         {[]string{with(`"pid":1`, `"pid":"Spans"`)}, []string{"id 0"}},
		"no tid":             {[]string{with(`"tid":1,`, ``)}, []string{"member 0"}},
		"no cat":             {[]string{with(`"cat":"c",`, ``)}, []string{"member 0"}},
		"no name":            {[]string{with(`"name":"n",`, ``)}, []string{"member 0"}},
		"no dur":             {[]string{with(`,"dur":5.000`, ``)}, []string{"member 0"}},
		"no ph":              {[]string{with(`"ph":"X",`, ``)}, []string{"member 0"}},
		"old kind":           {[]string{with(`"ph":"X"`, `"ph":"S"`)}, []string{"member 0"}},
		"scope":              {[]string{with(`"ph":"X"`, `"ph":"i","s":"x"`)}, []string{"member 0"}},
		"empty counter":      {[]string{with(`"ph":"X"`, `"ph":"C","args":{}`)}, []string{"member 0"}},
		"counter of text":    {[]string{with(`"ph":"X"`, `"ph":"C","args":{"a":"b"}`)}, []string{"member 0"}},
		"late counter key": {
			[]string{
				with(`"ph":"X"`, `"ph":"C","args":{"a":1}`),
				with(`"ph":"X"`, `"ph":"C","args":{"a":1,"b":2}`),
			},
			nil,
		},
		"no event": {[]string{"7"}, []string{"file 0"}},
		"begin and end": {
			[]string{with("X", "B"), x("2", "3"), `{"ph":"E","pid":1,"tid":1,"ts":9}`}, nil,
		},
		"end without begin": {[]string{with("X", "E")}, []string{"nesting 0"}},
		"begin without end": {[]string{with("X", "B")}, []string{"nesting 0"}},
		"arrow": {
			[]string{x("1", "5"), x("7", "5"), flow("s", "1", "1", ""), flow("f", "1", "7", end)}, nil,
		},
		"text id":  {[]string{x("1", "5"), flow("s", `"1"`, "1", "")}, []string{"flow 1"}},
		"no end":   {[]string{x("1", "5"), flow("s", "1", "1", "")}, []string{"flow 1"}},
		"no start": {[]string{x("1", "5"), flow("f", "1", "1", end)}, []string{"flow 1"}},
		"no bp":    {[]string{x("1", "5"), flow("s", "1", "1", ""), flow("f", "1", "1", "")}, []string{"flow 2"}},
		"outside": {
			[]string{x("1", "5"), flow("s", "1", "6", ""), flow("f", "1", "7", end)}, []string{"flow 1", "flow 2"},
		},
		"started twice": {
			[]string{x("1", "5"), flow("s", "1", "1", ""), flow("s", "1", "2", ""), flow("f", "1", "3", end)},
			[]string{"flow 2"},
		},
	} {
		list := strings.Join(c.events, ",\n")
		for _, file := range []string{
			`{"a":{"b":[1]},"traceEvents":[` + list + `],"z":1}`, "[" + list + "]", "[" + list + ",\n",
		} {
			if got, _ := check(t, file); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v, in %s", name, got, c.want, file)
			}
		}
	}
}

func TestBrokenFilesAreReported(t *testing.T) {
	t.Parallel()
	event := x("1", "2")
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"cut object":        {`{"traceEvents":[` + event, []string{"file -1"}},
		"object after cut":  {`{"traceEvents":[` + event + `]`, []string{"file -1"}},
		"cut event":         {`[` + event + `,{"ph":"X`, []string{"file -1"}},
		"two files":         {`{"traceEvents":[` + event + `]}{}`, []string{"file -1"}},
		"empty":             {``, []string{"file -1"}},
		"no events":         {`{"traceEvents":[]}`, []string{"file -1"}},
		"no traceEvents":    {`{"a":1}`, []string{"file -1"}},
		"events are text":   {`{"traceEvents":"a"}`, []string{"file -1"}},
		"number":            {`7`, []string{"file -1"}},
		"raw newline":       {`[` + event + `,` + strings.Replace(event, `"n"`, "\"a\nb\"", 1) + `]`, []string{"text 1"}},
		"raw quote":         {`[` + strings.Replace(event, `"n"`, `"a"b"`, 1) + `]`, []string{"text 0"}},
		"not UTF-8":         {`[` + strings.Replace(event, `"n"`, "\"a\xff\"", 1) + `]`, []string{"text -1"}},
		"cut UTF-8":         {"[" + event + "]\xe2\x82", []string{"file -1"}},
		"emoji and escapes": {`[` + strings.Replace(event, `"n"`, `"🚀 é \"a\"\n"`, 1) + `]`, nil},
	} {
		if got, _ := check(t, c.file); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSummaryCountsWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, m := range compress.Methods {
		var b bytes.Buffer
		z, err := m.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(z, "[%s,%s,%s,%s,%s]", x("1", "5"), x("7", "5"), flow("s", "1", "1", ""),
			flow("f", "1", "7", end), `{"ph":"M","name":"process_name","pid":1}`)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		sum, err := chromecheck.Check(&b, func(v chromecheck.Violation) { t.Error(v) })
		want := chromecheck.Summary{Events: 5, Slices: 2, Threads: 1, Flows: 1}
		if err != nil || sum != want {
			t.Errorf("%s: %+v, want %+v: %v", m.Name, sum, want, err)
		}
	}
}

func TestHugeEventsAreRefused(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader(`[{"name":"`), zeros{})
	_, err := chromecheck.Check(endless, func(chromecheck.Violation) {})
	if !errors.Is(err, chromecheck.ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

// The names of arrows are not kept, however long they are.
func TestLongNamesOfArrowsNeedNoMemory(t *testing.T) {
	var parts []io.Reader
	for i := range 64 {
		event := fmt.Sprintf(`,{"ph":"s","pid":1,"tid":1,"ts":1,"id":%d,"cat":"c","name":"`, i)
		if i == 0 {
			event = "[" + event[1:]
		}
		parts = append(parts, strings.NewReader(event), io.LimitReader(zeros{}, 2<<20),
			strings.NewReader(`"}`))
	}
	var end heapSize
	_, err := chromecheck.Check(io.MultiReader(append(parts, &end)...), func(chromecheck.Violation) {})
	if err != nil {
		t.Fatal(err)
	}
	if end > 64<<20 {
		t.Errorf("%d bytes are in use at the end of the file", end)
	}
}

// heapSize is a reader without content. It sets itself to the number of bytes in use when it is read.
type heapSize uint64

func (h *heapSize) Read([]byte) (int, error) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	*h = heapSize(m.HeapAlloc)
	return 0, io.EOF
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

func TestReadErrorsAreReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken disk")
	_, err := chromecheck.Check(io.MultiReader(strings.NewReader("["+x("1", "2")), iotest.ErrReader(broken)),
		func(v chromecheck.Violation) { t.Log(v) })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestTruncatedCompressedFilesAreReported(t *testing.T) {
	t.Parallel()
	text := "[" + strings.Repeat(x("1.000", "5.000")+",\n", 1000)
	for _, m := range compress.Methods {
		var file bytes.Buffer
		w, err := m.NewWriter(&file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{6, file.Len() / 2, file.Len() - 1} {
			var found []chromecheck.Violation
			_, err := chromecheck.Check(bytes.NewReader(file.Bytes()[:n]), func(v chromecheck.Violation) {
				found = append(found, v)
			})
			if !errors.Is(err, trace.ErrTruncated) || found != nil {
				t.Errorf("%s, %d of %d bytes: %v and %v, want only ErrTruncated", m.Name, n, file.Len(), err,
					found)
			}
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"traceEvents":[` + x("1", "2") + `]}`)
	f.Add(`[` + flow("s", "1", "6", "") + `,{"ph":"B"},{"ph":"C","args":{"a":null}}]`)
	f.Fuzz(func(t *testing.T, file string) {
		reported := 0
		sum, err := chromecheck.Check(strings.NewReader(file), func(chromecheck.Violation) { reported++ })
		if sum.Violations != reported {
			t.Errorf("%d violations, %d reported: %v", sum.Violations, reported, err)
		}
	})
}
