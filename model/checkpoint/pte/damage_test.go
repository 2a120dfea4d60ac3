package pte_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/ptetest"
)

func TestBrokenHeadersAreNamed(t *testing.T) {
	t.Parallel()
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		change       func(b []byte) []byte
		table, field string
	}{
		"a header that is too short":      {func(b []byte) []byte { le.PutUint32(b[12:], 16); return b }, "extended header", "length"},
		"a file that ends in the header":  {func(b []byte) []byte { return b[:20] }, "extended header", "length"},
		"a program longer than the file":  {func(b []byte) []byte { le.PutUint64(b[16:], 1<<40); return b }, "extended header", "program size"},
		"segments past the end":           {func(b []byte) []byte { le.PutUint64(b[24:], 1<<63); return b }, "extended header", "segments"},
		"segments that overflow":          {func(b []byte) []byte { le.PutUint64(b[32:], 1<<63); return b }, "extended header", "segments"},
		"segments within the program":     {func(b []byte) []byte { le.PutUint64(b[24:], 64); le.PutUint64(b[32:], 1); return b }, "extended header", "segments"},
		"segments without a base":         {func(b []byte) []byte { le.PutUint64(b[24:], 0); return b }, "DataSegment", "offset"},
		"a root past the end":             {func(b []byte) []byte { le.PutUint32(b, 1<<31); return b }, "Program", ""},
		"a root in the last three bytes":  {func(b []byte) []byte { le.PutUint32(b, uint32(le.Uint64(b[16:])-3)); return b }, "Program", ""},
		"a program that is only a header": {func(b []byte) []byte { le.PutUint64(b[16:], 4); return b }, "Program", ""},
	} {
		_, err := pte.Parse(c.change(ptetest.Example(true).Bytes()), "broken.pte")
		damage(t, name, err, c.table, c.field)
	}
	data := func() []byte { return ptetest.DataFile(ptetest.Named{Key: "a", Data: []byte("1")}) }
	for name, c := range map[string]struct {
		change       func(b []byte) []byte
		table, field string
	}{
		"no header":            {func(b []byte) []byte { b[8] = 'X'; return b }, "data file header", "identifier"},
		"too short":            {func(b []byte) []byte { le.PutUint32(b[12:], 8); return b }, "data file header", "length"},
		"cut":                  {func(b []byte) []byte { return b[:30] }, "data file header", "length"},
		"a FlatBuffer outside": {func(b []byte) []byte { le.PutUint64(b[24:], 1<<62); return b }, "data file header", "FlatBuffer"},
		"segments outside":     {func(b []byte) []byte { le.PutUint64(b[40:], 99); return b }, "data file header", "segments"},
	} {
		_, err := pte.ParseData(c.change(data()), "broken.ptd")
		damage(t, name, err, c.table, c.field)
	}
}

// Every id and size in the tables is checked, and the error names its location.
func TestBrokenTablesAreNamed(t *testing.T) {
	t.Parallel()
	type table = ptetest.Table
	value := ptetest.Value
	tensor := func(change func(t table)) table {
		v := ptetest.Tensor(f32, 2, 2)
		change(v)
		return value(v)
	}
	method := func(change func(m table), values ...table) []table {
		m := ptetest.Method("forward", values, nil, nil)
		if change != nil {
			change(m)
		}
		return []table{m}
	}
	instruction := func(kind uint8, args table) []table {
		return method(func(m table) { m[5] = []table{ptetest.Chain(ptetest.Instruction(kind, args))} },
			value(true))
	}
	for name, c := range map[string]struct {
		methods      []table
		table, field string
		path         string
	}{
		"an unknown type of value":    {method(nil, table{0: ptetest.One(12, table{})}), "EValue", "val_type", "execution_plan[0].values[0]"},
		"an unknown element type":     {method(nil, tensor(func(t table) { t[0] = int8(99) })), "Tensor", "scalar_type", "execution_plan[0].values[0].val"},
		"a negative size":             {method(nil, tensor(func(t table) { t[2] = []int32{2, -2} })), "Tensor", "sizes", "execution_plan[0].values[0].val"},
		"sizes that overflow":         {method(nil, tensor(func(t table) { t[2], t[3] = []int32{1 << 30, 1 << 30, 1 << 30}, nilOrder })), "Tensor", "sizes", ""},
		"too many dims":               {method(nil, tensor(func(t table) { t[2], t[3] = make([]int32, 65), nilOrder })), "Tensor", "sizes", ""},
		"a dim order with gaps":       {method(nil, tensor(func(t table) { t[3] = []byte{0, 2} })), "Tensor", "dim_order", ""},
		"a dim order that repeats":    {method(nil, tensor(func(t table) { t[3] = []byte{1, 1} })), "Tensor", "dim_order", ""},
		"a short dim order":           {method(nil, tensor(func(t table) { t[3] = []byte{0} })), "Tensor", "dim_order", ""},
		"a negative offset":           {method(nil, tensor(func(t table) { t[1] = int32(-1) })), "Tensor", "storage_offset", ""},
		"an unknown dynamism":         {method(nil, tensor(func(t table) { t[8] = int8(3) })), "Tensor", "shape_dynamism", ""},
		"an arena out of range":       {method(nil, tensor(func(t table) { t[6] = table{0: uint32(2)} })), "AllocationDetails", "memory_id", "execution_plan[0].values[0].val.allocation_info"},
		"a buffer out of range":       {method(nil, tensor(func(t table) { t[5] = uint32(1) })), "Tensor", "data_buffer_idx", ""},
		"an unknown location":         {method(nil, tensor(func(t table) { t[9] = table{2: int8(2)} })), "ExtraTensorInfo", "location", ""},
		"an unnamed external tensor":  {method(nil, tensor(func(t table) { t[9] = table{2: int8(1)} })), "ExtraTensorInfo", "fully_qualified_name", ""},
		"mutable data out of range":   {method(nil, tensor(func(t table) { t[5], t[6] = uint32(1), table{0: uint32(1)} })), "Tensor", "data_buffer_idx", ""},
		"an input out of range":       {method(func(m table) { m[3] = []int32{1} }, value(true)), "ExecutionPlan", "inputs", "execution_plan[0]"},
		"a negative output":           {method(func(m table) { m[4] = []int32{-1} }, value(true)), "ExecutionPlan", "outputs", "execution_plan[0]"},
		"a negative arena":            {method(func(m table) { m[8] = []int64{-1} }), "ExecutionPlan", "non_const_buffer_sizes", ""},
		"an integer list with a bool": {method(nil, value(true), table{0: ptetest.One(7, table{0: []int64{0}})}), "ExecutionPlan", "values", ""},
		"a list of large ids":         {method(nil, table{0: ptetest.One(7, table{0: []int64{1 << 40}})}), "IntList", "items", ""},
		"a tensor list with a bool":   {method(nil, value(true), table{0: ptetest.One(10, table{0: []int32{0}})}), "ExecutionPlan", "values", ""},
		"a tensor list with a gap":    {method(nil, table{0: ptetest.One(10, table{0: []int32{-1}})}), "TensorList", "items", ""},
		"an empty instruction":        {method(func(m table) { m[5] = []table{ptetest.Chain(table{})} }), "Instruction", "instr_args_type", "execution_plan[0].chains[0].instructions[0]"},
		"an unknown instruction":      {instruction(6, table{}), "Instruction", "instr_args_type", ""},
		"an operator out of range":    {instruction(1, table{0: int32(0)}), "KernelCall", "op_index", "execution_plan[0].chains[0].instructions[0].instr_args"},
		"a negative delegate":         {instruction(2, table{0: int32(-1)}), "DelegateCall", "delegate_index", ""},
		"an argument out of range":    {instruction(3, table{0: int32(0), 1: int32(7)}), "MoveCall", "move_to", ""},
		"a jump past the end":         {instruction(4, table{0: int32(0), 1: int32(2)}), "JumpFalseCall", "destination_instruction", ""},
		"a freed value out of range":  {instruction(5, table{0: int32(1)}), "FreeCall", "value_index", ""},
		"a delegate without data":     {method(func(m table) { m[7] = []table{{0: "Any"}} }), "BackendDelegate", "processed", ""},
		"a segment out of range":      {method(func(m table) { m[7] = []table{ptetest.Delegate("Any", 9)} }), "BackendDelegateDataReference", "index", ""},
		"an unknown data location":    {method(func(m table) { m[7] = []table{{0: "Any", 1: table{0: int8(2)}}} }), "BackendDelegateDataReference", "location", ""},
		"a name that is not UTF-8":    {method(func(m table) { m[0] = "\xff" }), "ExecutionPlan", "name", ""},
		"two methods with one name":   {append(method(nil), method(nil)...), "Program", "execution_plan", ""},
	} {
		p := ptetest.Program{Methods: c.methods}
		_, err := pte.Parse(p.Bytes(), "broken.pte")
		damage(t, name, err, c.table, c.field)
		var e *pte.Error
		if c.path != "" && errors.As(err, &e) && e.Path != c.path {
			t.Errorf("%s: got the path %q, want %q", name, e.Path, c.path)
		}
	}
}

var nilOrder []byte

// readEverything parses data as a program and as a data file, and calls every accessor that callers use.
func readEverything(data []byte) error {
	d, err := pte.ParseData(data, "data")
	if err == nil {
		for _, s := range d.Segments {
			_, err = s.Bytes()
		}
	}
	f, programErr := pte.Parse(data, "program")
	if programErr != nil {
		return errors.Join(err, programErr)
	}
	for _, s := range f.Segments {
		_, segmentErr := s.Bytes()
		err = errors.Join(err, segmentErr)
	}
	for i := range f.Named {
		_, keyErr := f.Lookup(f.Named[i].Key)
		err = errors.Join(err, keyErr)
	}
	return err
}

// typed fails the test if data does not parse and the error is not a *pte.Error with a file and a table.
func typed(t interface{ Fatalf(string, ...any) }, data []byte) {
	if _, err := pte.Parse(data, "program"); err != nil {
		if e := (*pte.Error)(nil); !errors.As(err, &e) || e.File == "" || e.Table == "" {
			t.Fatalf("not a *pte.Error of a table: %v", err)
		}
	}
}

func TestFilesCutAnywhereAreErrors(t *testing.T) {
	t.Parallel()
	p := ptetest.Example(true)
	plain := *p
	plain.Plain, plain.Segments, plain.Named = true, nil, nil
	plain.Methods = plain.Methods[2:]
	for name, data := range map[string][]byte{
		"extended": p.Bytes(), "plain": plain.Bytes(),
		"bundle": ptetest.Bundle(p.Bytes(), ptetest.Suite("forward")),
	} {
		for n := range data {
			typed(t, data[:n])
			if _, err := pte.Parse(data[:n], name); err == nil && name == "extended" {
				t.Errorf("%s cut at %d of %d is not an error", name, n, len(data))
			}
		}
	}
}

func TestFlippedBytesNeverPanic(t *testing.T) {
	t.Parallel()
	originals := [][]byte{
		ptetest.Example(true).Bytes(), ptetest.Bundle(ptetest.Example(false).Bytes(), ptetest.Suite("forward",
			ptetest.Case([]ptetest.Table{ptetest.Test(f32, []int32{1}, []byte("1234"))}, nil))),
		ptetest.DataFile(ptetest.Named{Key: "a", Data: []byte("1")}, ptetest.Named{Key: "b"}),
	}
	rapid.Check(t, func(t *rapid.T) {
		original := originals[rapid.IntRange(0, len(originals)-1).Draw(t, "file")]
		data := append([]byte{}, original...)
		for range rapid.IntRange(1, 8).Draw(t, "flips") {
			at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
			data[at] = rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff}), rapid.Byte()).Draw(t, "byte")
		}
		typed(t, data)
		_ = readEverything(data)
	})
}

// A small file may refer to the same table from many places. Parsing it must not allocate without limit.
func TestTablesThatShareBytesAreBounded(t *testing.T) {
	value := ptetest.Value(ptetest.Tensor(f32, make([]int32, 60)...))
	values := make([]ptetest.Table, 20000)
	for i := range values {
		values[i] = ptetest.Table{}
	}
	values[0] = value
	p := ptetest.Program{Methods: []ptetest.Table{ptetest.Method("forward", values, nil, nil)}, Plain: true}
	data := p.Bytes()
	// Point every offset of the list to the first table.
	le := binary.LittleEndian
	for at := 8; at+4*len(values) < len(data); at++ {
		if le.Uint32(data[at:]) != uint32(len(values)) {
			continue
		}
		first := uint32(at+4) + le.Uint32(data[at+4:])
		for i := range values {
			from := at + 4 + 4*i
			le.PutUint32(data[from:], first-uint32(from))
		}
		break
	}
	var err error
	allocated := allocation(func() { _, err = pte.Parse(data, "shared.pte") })
	var e *pte.Error
	if !errors.As(err, &e) {
		t.Errorf("%d values that share one table: %v", len(values), err)
	}
	if most := perByte*len(data) + 1<<20; allocated > most {
		t.Errorf("%d bytes were allocated for %d, want at most %d", allocated, len(data), most)
	}
}

// perByte is the number of bytes that may be allocated per byte of a file. It is large because a tensor of a
// few bytes in the file becomes a large struct.
const perByte = 120

func allocation(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// smallPrograms returns those programs of ExecuTorch's exporter that fit the fuzzer, or none if the test
// programs are missing.
func smallPrograms() (programs [][]byte) {
	paths, _ := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "pte", "dynamic", "*.pte"))
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && len(data) < 4096 {
			programs = append(programs, data)
		}
	}
	return programs
}

// FuzzParse looks for files that panic, hang or allocate too much memory.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(ptetest.Example(true).Bytes())
	f.Add(ptetest.Bundle(ptetest.Example(false).Bytes(), ptetest.Suite("forward")))
	f.Add(ptetest.DataFile(ptetest.Named{Key: "weight", Data: make([]byte, 140)}))
	for _, data := range smallPrograms() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := allocation(func() { _ = readEverything(data) })
		if most := 4*perByte*len(data) + 1<<20; n > most { // the fuzzer allocates too
			t.Errorf("%d bytes were allocated for %d", n, len(data))
		}
		typed(t, data)
	})
}

// The test flips bytes at the start of real files, where the tables are.
func TestRealFilesWithFlippedBytesNeverPanic(t *testing.T) {
	t.Parallel()
	for _, path := range realFiles(t)[:20] {
		original := readFile(t, path)
		random := rand.New(rand.NewPCG(1, uint64(len(original))))
		tables := min(len(original), 4096)
		for range 200 {
			data := append([]byte{}, original[:min(len(original), 1<<16)]...)
			for range 1 + random.IntN(3) {
				data[random.IntN(tables)] = byte(random.Uint32())
			}
			typed(t, data)
		}
	}
}
