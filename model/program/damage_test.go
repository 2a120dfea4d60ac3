package program_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/describe"
	"gpuscope/model/program"
	"gpuscope/model/sample"
	"gpuscope/ops"
)

// damage is a change of a file that makes a damaged program: the file ends early, or bytes have other values.
type damage struct {
	file  string // path in the folder of the test programs
	cut   int    // length of the damaged file; 0 to keep the length
	bytes []changed
}

// changed is a byte with another value.
type changed struct {
	at int
	to byte
}

func (d damage) String() string {
	if d.cut > 0 {
		return fmt.Sprintf("{file: %q, cut: %d}", d.file, d.cut)
	}
	return fmt.Sprintf("{file: %q, bytes: %v}", d.file, d.bytes)
}

// subject is a program to damage. Its bytes are changed and restored for each damage.
type subject struct {
	file   string
	data   []byte
	tables [][2]int // ranges of the file that hold tables and not weights
}

func newSubject(t *testing.T, file string) *subject {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sharedPrograms(t), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := pte.Parse(data, file)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{file: file, data: data}
	first := len(data)
	for _, m := range f.Methods {
		for _, d := range m.Delegates {
			_, at := d.Data.Place()
			s.tables = append(s.tables, [2]int{int(at), int(at + d.Data.Size())})
		}
	}
	for _, segment := range f.Segments {
		_, at := segment.Place()
		first = min(first, int(at))
	}
	s.tables = append(s.tables, [2]int{0, first})
	return s
}

// flips returns a damage with one to three other bytes or one other word. Most of them are in tables.
func (s *subject) flips(random *rand.Rand) damage {
	d := damage{file: s.file}
	place := func(n int) int {
		in := s.tables[random.IntN(len(s.tables))]
		if random.IntN(10) == 0 {
			in = [2]int{0, len(s.data)}
		}
		return in[0] + random.IntN(in[1]-in[0]-n+1)
	}
	if random.IntN(3) == 0 { // a size, or the id of another value
		words := []uint32{
			0, 1, 1 << 15, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1<<32 - 2, random.Uint32N(1 << 12),
			random.Uint32N(32), random.Uint32N(32), random.Uint32N(400),
		}
		at := place(4) &^ 3
		for i, b := range binary.LittleEndian.AppendUint32(nil, words[random.IntN(len(words))]) {
			d.bytes = append(d.bytes, changed{at + i, b})
		}
		return d
	}
	for range max(1, random.IntN(6)-2) {
		at := place(1)
		values := []byte{s.data[at] ^ 1<<random.IntN(8), 0, 1, 0x7f, 0x80, 0xff, byte(random.Uint32())}
		d.bytes = append(d.bytes, changed{at, values[random.IntN(len(values))]})
	}
	return d
}

// with calls f with the damaged bytes.
func (s *subject) with(d damage, f func(data []byte, d fmt.Stringer)) {
	if d.cut > 0 {
		f(s.data[:d.cut], d)
		return
	}
	before := make([]byte, len(d.bytes))
	for i, b := range d.bytes {
		before[i], s.data[b.at] = s.data[b.at], b.to
	}
	f(s.data, d)
	for i := len(before) - 1; i >= 0; i-- {
		s.data[d.bytes[i].at] = before[i]
	}
}

// outcome is how far a damaged program got.
type outcome int

const (
	unread outcome = iota
	unplanned
	planned
	ran
)

// Limits on what a damaged program may use until it is planned. A graph has the size of its file; what the
// weights and tensors take on the device is only computed.
const (
	mostTime  = 20 * time.Second
	mostBytes = 256 << 20 // allocated in all, more than is in use at a time
)

// hostileTest opens damaged programs and reports what must not happen.
type hostileTest struct {
	testing.TB
	dev    gpu.Device
	every  int // dev runs one of so many programs that can be planned
	counts map[outcome]int
}

// try reads, describes, plans and runs a program.
func (t *hostileTest) try(data []byte, d fmt.Stringer) {
	result := unread
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%v: panic: %v\n%s", d, p, debug.Stack())
		}
		t.counts[result]++
	}()
	if os.Getenv("GPUSCOPE_DAMAGE_LOG") != "" { // names the case that crashes the process
		fmt.Fprintln(os.Stderr, d)
	}
	f, m := planWithin(t, data, d)
	switch {
	case f == nil:
		return
	case m == nil:
		result = unplanned
		return
	}
	result = planned
	if (t.counts[planned]+t.counts[ran])%t.every == 0 && runDamaged(t.Context(), t.dev, m, f) {
		result = ran
	}
}

// check reports the counts, and fails the test if it does not cover all outcomes.
func (t *hostileTest) check() {
	t.Helper()
	t.Logf("%d were not read, %d not planned, %d only planned, %d ran", t.counts[unread],
		t.counts[unplanned], t.counts[planned], t.counts[ran])
	if t.counts[unread] == 0 || t.counts[unplanned] == 0 || t.counts[ran] == 0 {
		t.Errorf("the damage is of one kind: %v", t.counts)
	}
}

// planWithin calls plan and fails the test if it took too much time or memory.
func planWithin(t testing.TB, data []byte, d fmt.Stringer) (*pte.File, *program.Method) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f, m := plan(t, data, d)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > mostBytes || took > mostTime {
		t.Errorf("%v: allocated %d bytes in %v, want at most %d in %v", d, n, took, mostBytes, mostTime)
	}
	return f, m
}

// plan does everything that needs no device. It returns nil for what could not be opened or planned.
func plan(t testing.TB, data []byte, d fmt.Stringer) (*pte.File, *program.Method) {
	f, err := pte.Parse(data, "damaged.pte")
	if err != nil {
		return nil, nil
	}
	info := describe.Of(f)
	var out bytes.Buffer
	if err := describe.Text(t.Context(), &out, info); err != nil {
		t.Errorf("%v: text: %v", d, err)
	}
	if err := describe.DOT(&out, info); err != nil {
		t.Errorf("%v: drawing: %v", d, err)
	}
	if err := json.NewEncoder(&out).Encode(info); err != nil {
		t.Errorf("%v: JSON: %v", d, err)
	}
	if l, err := program.OpenLanguage(f, ""); err == nil && l.Context > 0 {
		b := graph.NewBuilder(gpu.DefaultLimits())
		b.Fuse(ops.Fusions...)
		_, _ = l.Build(b, program.Step{
			Context: l.Context, MaxChunk: min(l.MaxChunk, l.Context), Told: 5, Sampling: sample.Sampling{},
		})
	}
	m, err := program.Build(f, "forward", gpu.DefaultLimits(), program.Options{})
	if err != nil {
		return f, nil
	}
	return f, m
}

// arrayTypes maps an element type to that of an array.
var arrayTypes = map[pte.Type]npy.Type{
	pte.Bool: npy.Bool, pte.Int8: npy.Int8, pte.Uint8: npy.Uint8, pte.Int32: npy.Int32, pte.Int64: npy.Int64,
	pte.Float16: npy.Float16, pte.Float64: npy.Float64,
}

// runDamaged runs a planned program with inputs of the largest shapes, and returns whether the run completed.
func runDamaged(ctx context.Context, dev gpu.Device, m *program.Method, f *pte.File) bool {
	run, err := program.Load(dev, m)
	if err != nil {
		return false
	}
	defer run.Release()
	method, err := f.Method("forward")
	if err != nil {
		return false
	}
	var inputs []*npy.Array
	for _, id := range method.Inputs {
		a := &npy.Array{Type: npy.Float32}
		if t, ok := method.Values[id].(*pte.Tensor); ok {
			if same, ok := arrayTypes[t.Type]; ok {
				a.Type = same
			}
			a.Dims = t.Sizes
			a.Data = make([]byte, graph.Numel(t.Sizes)*a.Type.Size())
		}
		inputs = append(inputs, a)
	}
	_, err = run.Run(ctx, inputs)
	return err == nil
}

// damagedFiles returns the three models and all or 20 of the other programs.
func damagedFiles(t *testing.T, every bool) (files []string) {
	t.Helper()
	dir := sharedPrograms(t)
	for i, pattern := range []string{"*.pte", "dynamic/*.pte", "ops/*.pte"} {
		all, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil || len(all) == 0 {
			t.Fatalf("%d programs in %s, %v", len(all), pattern, err)
		}
		n := []int{len(all), 5, 15}[i]
		if every {
			n = len(all)
		}
		for k := range n {
			files = append(files, filepath.ToSlash(all[k*len(all)/n][len(dir)+1:]))
		}
	}
	return files
}

// Each of these programs once ended the process.
func TestProgramsThatPanickedAreRefused(t *testing.T) {
	h := &hostileTest{TB: t, dev: fake.New(fake.Options{NoLog: true}), every: 1, counts: map[outcome]int{}}
	for _, d := range []damage{
		{file: "llama-demo-8da4w.pte", bytes: []changed{{22510, 0}}},                 // a view after an error
		{file: "dynamic/dyn_swiglu_outer_reversed.pte", bytes: []changed{{2418, 0}}}, // groups of size 0
	} {
		newSubject(t, d.file).with(d, h.try)
	}
}

// damageAll reports whether to damage every program at many places, which takes a long time.
func damageAll() bool { return os.Getenv("GPUSCOPE_DAMAGE") == "all" }

// A damaged program is an error or completes a run. The device computes nothing.
func TestDamagedProgramsAreRefusedOrRun(t *testing.T) {
	cuts, flips := 10, 40
	switch {
	case damageAll():
		cuts, flips = 100, 1000
	case testing.Short():
		cuts, flips = 3, 6
	}
	tryDamage(t, fake.New(fake.Options{NoLog: true}), damagedFiles(t, damageAll()), 1, cuts, flips)
}

// Kernels of a damaged program compile and run on a real device, or are refused.
func TestDamagedProgramsRunOnAGPU(t *testing.T) {
	flips, every := 10, 5
	switch {
	case damageAll():
		flips = 200
	case testing.Short():
		flips = 3
	}
	tryDamage(t, gputest.Open(t), damagedFiles(t, false), every, 1, flips)
}

// tryDamage damages programs, and runs one of every so many that can be planned.
func tryDamage(t *testing.T, dev gpu.Device, files []string, every, cuts, flips int) {
	t.Helper()
	h := &hostileTest{TB: t, dev: dev, every: every, counts: map[outcome]int{}}
	for _, file := range files {
		s := newSubject(t, file)
		random := rand.New(rand.NewPCG(1, uint64(len(s.data))))
		for i := range cuts {
			s.with(damage{file: file, cut: 1 + i*(len(s.data)-1)/cuts}, h.try)
		}
		for range flips {
			s.with(s.flips(random), h.try)
		}
	}
	h.check()
}

// FuzzBuild looks for programs whose plan panics, hangs or takes too much memory.
func FuzzBuild(f *testing.F) {
	for _, folder := range []string{"dynamic", "ops"} {
		paths, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "pte", folder, "*.pte"))
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil && len(data) < 4096 {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { planWithin(t, data, damage{}) })
}
