package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// fill gives every field below v a different value. No value is zero.
func fill(t *testing.T, v reflect.Value, n *int, path string) {
	*n++
	if v.Type() == reflect.TypeFor[trace.Time]() {
		v.Set(reflect.ValueOf(trace.Measured(int64(*n))))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprint("é\n", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n, path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n, path+"[]")
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n, path+"[]")
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n, path+" key")
		fill(t, elem, n, path+" value")
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		for f, field := range v.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" {
				fill(t, field, n, path+"."+f.Name)
			}
		}
	case reflect.Interface: // values of any type are sent as JSON
		v.Set(reflect.ValueOf(fmt.Sprint(*n)))
	default:
		t.Fatalf("%s: session: type %s cannot be sent", path, v.Kind())
	}
}

// crossed returns a message as it arrives on the other side.
func crossed[T any](t testing.TB, m *T) *T {
	t.Helper()
	b, err := wireBytes(m)
	if err != nil {
		t.Fatal(err)
	}
	got := new(T)
	if err := receive(newWireReader(bytes.NewReader(b)), got); err != nil {
		t.Fatal(err)
	}
	return got
}

// asSent returns how a message differs from the one that was sent, or "". Even nil and empty slices must
// match.
func asSent[T any](sent, got *T) string {
	return cmp.Diff(sent, got, cmpopts.EquateComparable(trace.Time{}), cmpopts.EquateNaNs(),
		cmpopts.IgnoreUnexported(trace.Trace{}))
}

// Every field of a message must arrive. A field that is not sent or not filled in is missing for a session in
// another process.
func TestEveryFieldOfEveryMessageCrossesThePipe(t *testing.T) {
	t.Parallel()
	var q request
	var m message
	n := 0
	fill(t, reflect.ValueOf(&q).Elem(), &n, "request")
	fill(t, reflect.ValueOf(&m).Elem(), &n, "message")
	if d := asSent(&q, crossed(t, &q)); d != "" {
		t.Error("request:", d)
	}
	if d := asSent(&m, crossed(t, &m)); d != "" {
		t.Error("message:", d)
	}
	if n < 100 {
		t.Errorf("only %d values were tested", n)
	}
}

// A measured 0, or a 0 in an optional field, must not become absent.
func TestAZeroThatIsThereArrives(t *testing.T) {
	t.Parallel()
	zero, token := trace.PlanID(0), 0
	want := message{Event: &Event{Records: []trace.Record{{Step: &trace.Step{
		Token: &token, Tokens: []int{}, SymInts: map[string]int64{},
		Dispatches: []trace.StepDispatch{{GPUNS: trace.Measured(0)}},
		Resize: trace.Resize{Passes: []trace.Pass{{Hooks: []trace.Hook{{
			Plans: []trace.PlanChange{{From: &zero}},
		}}}}},
	}}}}}
	if d := asSent(&want, crossed(t, &want)); d != "" {
		t.Error(d)
	}
}

// A broken model produces NaN and Inf, and its steps are the ones that people need to see.
func TestNonFiniteNumbersSurviveTheTrace(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	want := trace.Record{Step: &trace.Step{
		Top:        []trace.Candidate{{ID: 3, Logit: nan, P: math.Inf(-1)}},
		Dispatches: []trace.StepDispatch{{Error: &trace.NumericError{MaxAbs: trace.Number(math.Inf(1))}}},
	}}
	if d := asSent(&want, crossed(t, &want)); d != "" {
		t.Error(d)
	}
	if _, err := wireBytes(&trace.Record{Step: &trace.Step{Canary: nan}}); err == nil {
		t.Error("sent a number that a trace file cannot hold")
	}
}

func TestAnyRecordArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		sent := tracetest.Random(r)
		m := message{Event: &Event{Opened: sent}}
		for i := range sent.Plans {
			m.Event.Records = append(m.Event.Records, trace.Record{Plan: &sent.Plans[i]})
		}
		for i := range sent.Steps {
			m.Event.Records = append(m.Event.Records, trace.Record{Step: &sent.Steps[i]})
		}
		if d := asSent(&m, crossed(t, &m)); d != "" {
			r.Fatal(d)
		}
	})
}

// Messages are read one after another, and remembered strings are not mixed up.
func TestMessagesFollowEachOther(t *testing.T) {
	t.Parallel()
	recorded := tracetest.Llama(2, 30)
	var stream []byte
	var sent []trace.Record
	for i := range recorded.Plans {
		sent = append(sent, trace.Record{Plan: &recorded.Plans[i]})
	}
	for i := range recorded.Steps {
		sent = append(sent, trace.Record{Step: &recorded.Steps[i]})
	}
	for i := range sent {
		b, err := wireBytes(&sent[i])
		if err != nil {
			t.Fatal(err)
		}
		stream = append(stream, b...)
	}
	in := newWireReader(iotest.OneByteReader(bytes.NewReader(stream)))
	got := make([]trace.Record, len(sent))
	for i := range sent {
		if err := receive(in, &got[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range sent { // slices cut from one block do not overlap either
		if d := asSent(&sent[i], &got[i]); d != "" {
			t.Fatalf("record %d: %s", i, d)
		}
		if s := got[i].Step; s != nil && cap(s.Dispatches) > len(s.Dispatches) {
			t.Fatalf("step %d: appending a dispatch overwrites memory of another step", i)
		}
	}
	if err := receive(in, &trace.Record{}); err != io.EOF {
		t.Errorf("after the last message: %v", err)
	}
}

// A step has hundreds of small objects, and a fast device sends hundreds of steps per second. So receiving a
// step takes few allocations. Grids are the same in many plans and are kept only once.
func TestWhatIsReceivedIsFewAllocations(t *testing.T) {
	recorded := tracetest.Llama(13, 4)
	m := message{Event: &Event{Records: []trace.Record{{Step: &recorded.Steps[2]}}}}
	for i := range 40 {
		p := recorded.Plans[i]
		p.Grid = &trace.Grid{Rule: "rows", Terms: []trace.Term{{Name: "n", Value: int64(i % 4), Per: 16}}}
		m.Event.Records = append(m.Event.Records, trace.Record{Plan: &p})
	}
	sent, err := wireBytes(&m)
	if err != nil {
		t.Fatal(err)
	}
	var got message
	var allocations float64
	var grids map[*trace.Grid]bool
	for range 4 { // try readers with other hashes: two grids, or two strings, may share a slot
		in := newWireReader(nil)
		allocations = testing.AllocsPerRun(20, func() {
			in.in.Reset(bytes.NewReader(sent))
			got = message{}
			if err := receive(in, &got); err != nil {
				t.Fatal(err)
			}
		})
		grids = map[*trace.Grid]bool{}
		for _, r := range got.Event.Records[1:] {
			grids[r.Plan.Grid] = true
		}
		if len(grids) == 4 && allocations <= 30 {
			break
		}
	}
	if allocations > 30 {
		t.Errorf("a step with 40 plans took %v allocations", allocations)
	}
	if d := asSent(&m, &got); d != "" {
		t.Error(d)
	}
	if len(grids) != 4 {
		t.Errorf("4 distinct grids, kept as %d objects", len(grids))
	}
}

// A grid whose length field is wrong is refused, and is not kept for the next message.
func TestAGridOfAnotherLengthIsRefused(t *testing.T) {
	t.Parallel()
	b, err := wireBytes(&trace.Plan{Grid: &trace.Grid{Rule: "rows"}})
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("rows")) - 3 // followed by the number of fields and the length of the string
	for said, want := range map[byte]error{6: errHeader, 7: nil, 8: errShort} {
		b[at] = said
		err := receive(newWireReader(bytes.NewReader(b)), &trace.Plan{})
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", said-1, err, want)
		}
	}
}

func TestCutOrOversizedMessageIsRefused(t *testing.T) {
	t.Parallel()
	step := tracetest.Llama(1, 2).Steps[1]
	b, err := wireBytes(&step)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(b []byte, want error) {
		t.Helper()
		err := receive(newWireReader(bytes.NewReader(b)), &trace.Step{})
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", len(b), err, want)
		}
	}
	for n := 1; n < len(b); n += 7 {
		refused(b[:n], io.ErrUnexpectedEOF)
	}
	body := b[2:]
	if n, k := binary.Uvarint(b); k != 2 || int(n) != len(body) {
		t.Fatalf("length %d in %d bytes, before a body of %d", n, k, len(body))
	}
	refused(append(binary.AppendUvarint(nil, uint64(len(body)+1)), append(body, 0)...), errUnread)
	refused(append(binary.AppendUvarint(nil, uint64(len(body)-1)), body...), errShort)
	refused(binary.AppendUvarint(nil, 1<<40), errTooLarge)
}

// FuzzReceive checks that any bytes on a pipe give a message or an error. A received message can be sent
// again.
func FuzzReceive(f *testing.F) {
	recorded := tracetest.Llama(1, 3)
	for i := range recorded.Steps {
		b, err := wireBytes(&message{Event: &Event{Records: []trace.Record{{Step: &recorded.Steps[i]}}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{6, 0, 1, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		if receive(newWireReader(bytes.NewReader(b)), &m) != nil {
			return
		}
		if d := asSent(&m, crossed(t, &m)); d != "" {
			t.Error(d)
		}
	})
}

// decoded returns what an engine sends for a decode step of about 260 dispatches at a timing level. It
// includes the plans that the position changes in each layer.
func decoded(level trace.Timing) *message {
	recorded := tracetest.Llama(13, 4)
	step := recorded.Steps[2]
	if step.Timing = level; level != trace.TimingDispatch {
		step.Dispatches = nil
		for _, d := range recorded.Steps[2].Dispatches {
			step.Dispatches = append(step.Dispatches, trace.StepDispatch{Plan: d.Plan})
		}
	}
	m := &message{Event: &Event{}}
	for i := range 26 {
		p := recorded.Plans[i%2]
		p.ID, p.Dispatch = trace.PlanID(9000+i), trace.DispatchID(20*i)
		p.Params = strings.Repeat("1d000000", 6)
		p.Grid = &trace.Grid{Rule: "rows", Terms: []trace.Term{{Name: "heads", Value: 32, Per: 1}}}
		m.Event.Records = append(m.Event.Records, trace.Record{Plan: &p})
	}
	m.Event.Records = append(m.Event.Records, trace.Record{Step: &step})
	return m
}

// BenchmarkCross measures what sending and receiving a decode step costs.
func BenchmarkCross(b *testing.B) {
	for _, level := range []trace.Timing{trace.TimingStep, trace.TimingDispatch} {
		m := decoded(level)
		sent, err := wireBytes(m)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(level)+"/send", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wireBytes(m); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(sent)), "bytes")
		})
		b.Run(string(level)+"/receive", func(b *testing.B) {
			b.ReportAllocs()
			in := newWireReader(nil)
			for b.Loop() {
				in.in.Reset(bytes.NewReader(sent))
				var got message
				if err := receive(in, &got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Most of what a fast device sends is plans of layers that differ only in their dispatch, and dispatches with
// nothing but a plan. They arrive unchanged, in few bytes.
func TestWhatLayersHaveInCommonIsSentOnce(t *testing.T) {
	t.Parallel()
	m := decoded("step")
	b, err := wireBytes(m)
	if err != nil {
		t.Fatal(err)
	}
	plans, ran := m.Event.Records[:26], m.Event.Records[26].Step.Dispatches
	rest := decoded("step")
	rest.Event.Records = rest.Event.Records[26:]
	rest.Event.Records[0].Step.Dispatches = nil
	r, err := wireBytes(rest)
	if err != nil {
		t.Fatal(err)
	}
	if n, most := len(b)-len(r), 2*200+8*len(plans)+2*len(ran)+8; n > most {
		t.Errorf("%d plans of two kernels and %d dispatches take %d bytes, more than %d",
			len(plans), len(ran), n, most)
	}
	got := crossed(t, m)
	if d := asSent(m, got); d != "" {
		t.Error(d)
	}
	p := plans[8].Plan
	for i, change := range []func(){
		func() { p.Bytes++ },
		func() { p.Grid = &trace.Grid{Rule: "tiles", Terms: p.Grid.Terms} },
		func() { p.Grid = nil },
		func() { p.Params = "" },
		func() { ran[3].GPUNS = trace.Measured(0) },
		func() { ran[4].Samples = []int64{} },
		func() { m.Event.Records[26].Step.Dispatches = ran[:0] },
		func() { m.Event.Records[26].Step.Dispatches = nil },
	} {
		if change(); asSent(m, crossed(t, m)) != "" {
			t.Errorf("change %d: %s", i, asSent(m, crossed(t, m)))
		}
	}
}

// A plan that refers to an earlier plan of its message is refused if that plan does not exist.
func TestAPlanLikeNoneIsRefused(t *testing.T) {
	t.Parallel()
	var b []byte
	for _, x := range []byte{0, 1, 2, 3} { // none, complete, as the last plan, as the one before
		body := []byte{1, x, 0, 0}
		if x < 2 {
			body = body[:2+x]
		}
		b = append(append(b, byte(len(body))), body...)
	}
	in := newWireReader(bytes.NewReader(b))
	for i, want := range []error{nil, nil, errPlanRef, errPlanRef} {
		if err := receive(in, &trace.Record{}); !errors.Is(err, want) {
			t.Errorf("message %d: %v, want %v", i, err, want)
		}
	}
}

func TestEngineOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	for first, version := range map[string]string{
		helloWords + "0123456789abcdef":       "0123456789abcdef",
		"it is a nice day":                    "",
		helloWords + strings.Repeat("0", 1e6): "",
	} {
		synctest.Test(t, func(t *testing.T) {
			requests, front := io.Pipe()
			s := Connect(Peer{Messages: strings.NewReader(first + "\n"), Requests: front})
			if n, err := io.Copy(io.Discard, requests); n != 0 || err != nil {
				t.Errorf("the engine was sent %d bytes, %v", n, err)
			}
			if e, ok := <-s.Events(); ok {
				t.Errorf("event %+v", e)
			}
			var other *ProtocolError
			switch err := s.Close(); {
			case version == "" && !errors.Is(err, ErrNotEngine):
				t.Errorf("%.40s: %v", first, err)
			case version != "" && (!errors.As(err, &other) || other.Engine != version ||
				other.Own != protocol()):
				t.Errorf("%s: %v", first, err)
			}
		})
	}
}

func TestProtocolNamesTheTypesOfMessages(t *testing.T) {
	t.Parallel()
	name := func(typ reflect.Type) string {
		var b strings.Builder
		describe(&b, typ, map[reflect.Type]bool{})
		return b.String()
	}
	type inner struct{ A int }
	names := map[string]bool{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ A int }](),
		reflect.TypeFor[struct{ B int }](),
		reflect.TypeFor[struct{ A string }](),
		reflect.TypeFor[struct {
			A int `json:"a"`
		}](),
		reflect.TypeFor[struct{ A []inner }](),
		reflect.TypeFor[struct{ A []struct{ B int } }](),
		reflect.TypeFor[struct{ A map[int]inner }](),
	} {
		names[name(typ)] = true
	}
	if len(names) != 7 {
		t.Errorf("7 types have %d distinct names: %v", len(names), names)
	}
	if !strings.Contains(name(reflect.TypeFor[message]()), "gpu_ns") {
		t.Error("the name does not cover the fields of a step's dispatch")
	}
}

func TestProgressSaysHowMuch(t *testing.T) {
	for want, p := range map[string]Progress{
		"3/12":           {Done: 3, Total: 12},
		"25 %":           {Done: 25, Total: 100},
		"25 %, 8 s left": {Done: 25, Total: 100, PerSecond: 10},
		"100 %":          {Done: 100, Total: 100, PerSecond: 10},
		"0/4400 MB":      {Total: 4_400_000_000, Bytes: true},
		"1200/4400 MB at 830 MB/s": {
			Done: 1_200_000_000, Total: 4_400_000_000, Bytes: true, PerSecond: 830e6,
		},
	} {
		if got := p.Amount(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
