package gguf_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

// small returns a file with every kind of metadata value and a few tensors.
func small() *gguftest.Builder {
	b := gguftest.New()
	b.Set("general.architecture", "llama")
	b.Set("u8", uint8(200))
	b.Set("i8", int8(-100))
	b.Set("u16", uint16(60000))
	b.Set("i16", int16(-30000))
	b.Set("u32", uint32(4e9))
	b.Set("i32", int32(-2e9))
	b.Set("u64", uint64(1<<63))
	b.Set("i64", int64(-1<<63))
	b.Set("f32", float32(0.5))
	b.Set("f64", 0.25)
	b.Set("bool", true)
	b.Set("empty", "")
	b.Set("strings", []string{"a", "", "Ġthe"})
	b.Set("ints", []int{1, -2, 3})
	b.Set("floats", []float32{1.5, -2})
	b.Set("bools", []bool{true, false})
	b.Set("nested", [][]uint8{{1, 2}, {}, {3}})
	b.F32("norm", []int{3}, []float32{1, -2, 3.5})
	b.F16("matrix", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	b.Q4_0("quantised", []int{2, 64}, make([]float32, 128))
	b.F32("scalar", nil, []float32{7})
	return b
}

func TestMetadataIsReadByKind(t *testing.T) {
	t.Parallel()
	f := mustParse(t, small().Bytes())
	check := func(key string, want any, got any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", key, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	for key, want := range map[string]uint64{"u8": 200, "u16": 60000, "u32": 4e9, "u64": 1 << 63} {
		got, err := f.Uint(key)
		check(key, want, got, err)
	}
	for key, want := range map[string]int{
		"u8": 200, "i8": -100, "i16": -30000, "i32": -2e9,
		"i64": -1 << 63,
	} {
		got, err := f.Int(key)
		check(key, want, got, err)
	}
	for key, want := range map[string]float64{"f32": 0.5, "f64": 0.25} {
		got, err := f.Float(key)
		check(key, want, got, err)
	}
	b, err := f.Bool("bool")
	check("bool", true, b, err)
	s, err := f.String("empty")
	check("empty", "", s, err)
	ss, err := f.Strings("strings")
	check("strings", []string{"a", "", "Ġthe"}, ss, err)
	is, err := f.Ints("ints")
	check("ints", []int{1, -2, 3}, is, err)
	fs, err := f.Floats("floats")
	check("floats", []float64{1.5, -2}, fs, err)
	v, _ := f.Value("nested")
	check("nested", []any{[]any{uint8(1), uint8(2)}, []any{}, []any{uint8(3)}}, v.Any(), nil)
	check("nested", "[[1, 2], [], [3]]", v.String(), nil)
	check("nested", "array[3]", v.Type(), nil)
	v, _ = f.Value("bools")
	check("bools", []any{true, false}, v.Any(), nil)
	n, err := f.UintOr("absent", 7)
	check("absent", uint64(7), n, err)
	check("first key", "general.architecture", f.Keys()[0], nil)
	if len(f.Keys()) != 18 {
		t.Errorf("%d keys, want 18", len(f.Keys()))
	}
}

func TestMetadataErrorsNameKeyValueAndLimit(t *testing.T) {
	t.Parallel()
	f := mustParse(t, small().Bytes())
	messages := wordingtest.New(t)
	refused := func(name string) func(any, error) {
		return func(_ any, err error) { messages.Error(name, err) }
	}
	refused("Uint(absent)")(f.Uint("absent"))
	refused("Uint(i8)")(f.Uint("i8"))
	refused("Int(u64)")(f.Int("u64"))
	refused("Int(empty)")(f.Int("empty"))
	refused("UintOr(f32, 1)")(f.UintOr("f32", 1))
	refused("Bool(u8)")(f.Bool("u8"))
	refused("Float(u8)")(f.Float("u8"))
	refused("String(ints)")(f.String("ints"))
	refused("Strings(ints)")(f.Strings("ints"))
	refused("Ints(strings)")(f.Ints("strings"))
	refused("Floats(f32)")(f.Floats("f32"))
	refused("Tensor(absent)")(f.Tensor("absent"))
}

func TestTensorsAreRowMajor(t *testing.T) {
	t.Parallel()
	for _, version := range []uint32{2, 3} {
		for _, alignment := range []int{1, 8, 32, 256} {
			b := small()
			b.Version, b.Alignment = version, alignment
			f := mustParse(t, b.Bytes())
			if f.Version != int(version) || f.Alignment != alignment {
				t.Fatalf("version %d alignment %d, want %d and %d", f.Version, f.Alignment, version,
					alignment)
			}
			m, err := f.Tensor("matrix")
			if err != nil {
				t.Fatal(err)
			}
			if m.String() != "matrix F16 [2, 3]" || m.Size() != 12 || m.Offset%int64(alignment) != 0 {
				t.Errorf("got %v, %d bytes at %d", m, m.Size(), m.Offset)
			}
			values, err := gguf.Dequantize(m)
			if diff := cmp.Diff([]float32{1, 2, 3, 4, 5, 6}, values); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
			s, _ := f.Tensor("scalar")
			if values, err := gguf.Dequantize(s); err != nil || len(values) != 1 || values[0] != 7 {
				t.Errorf("scalar: %v, %v", values, err)
			}
		}
	}
}

// TestCutFileIsAnErrorAtEveryByte checks that no prefix of a file parses, and that each error is one line
// that starts with the file name.
func TestCutFileIsAnErrorAtEveryByte(t *testing.T) {
	t.Parallel()
	data := small().Bytes()
	for n := range data {
		_, err := gguf.Parse(data[:n:n], "cut.gguf")
		if err == nil {
			t.Fatalf("the first %d of %d bytes parse", n, len(data))
		}
		if text := err.Error(); !strings.HasPrefix(text, "cut.gguf: ") || strings.Contains(text, "\n") {
			t.Fatalf("cut at %d: %q", n, text)
		}
	}
}

// TestChangedByteNeverPanics changes each byte of a file in turn. The file must parse or return an error.
func TestChangedByteNeverPanics(t *testing.T) {
	t.Parallel()
	data := small().Bytes()
	for i := range data {
		for _, x := range []byte{0x01, 0x80, 0xff} {
			changed := append([]byte(nil), data...)
			changed[i] ^= x
			readEverything(changed)
		}
	}
}

func TestDamageIsNamed(t *testing.T) {
	t.Parallel()
	messages := wordingtest.New(t)
	le := binary.LittleEndian
	patched := func(find string, at int, value uint64) []byte {
		data := small().Bytes()
		i := strings.Index(string(data), find)
		if i < 0 {
			t.Fatalf("no %q", find)
		}
		le.PutUint64(data[i+len(find)+at:], value)
		return data
	}
	built := func(change func(*gguftest.Builder)) []byte {
		b := small()
		change(b)
		return b.Bytes()
	}
	swapped := small().Bytes()
	binary.BigEndian.PutUint32(swapped[4:], 3)
	for name, c := range map[string]struct {
		data []byte
	}{
		"tensor count": {
			patched("GGUF", 4, 1<<60),
		},
		"pair count": {
			patched("GGUF", 12, 1<<60),
		},
		"more tensors than any model has": {
			append(patched("GGUF", 4, 1<<17+1), make([]byte, 24<<17)...),
		},
		"more pairs than any model has": {
			append(patched("GGUF", 12, 1<<16+1), make([]byte, 13<<16)...),
		},
		"version": {
			patched("GGUF", 0, 9),
		},
		"big-endian": {swapped},
		"string length": {
			patched("general.architecture", 4, 1<<62),
		},
		"value type": {
			patched("general.architecture", 0, 99),
		},
		"array type":   {patched("strings", 4, 77)},
		"array length": {patched("strings", 8, 1<<61)},
		"bool":         {patched("bool", 4, 2)},
		"twice a key":  {built(func(b *gguftest.Builder) { b.Add("u8", 1) })},
		"empty key": {
			built(func(b *gguftest.Builder) { b.Add("", 1) }),
		},
		"escape in name": {
			built(func(b *gguftest.Builder) { b.F32("a\x1b[2J", nil, []float32{1}) }),
		},
		"alignment": {
			built(func(b *gguftest.Builder) { b.Set("general.alignment", 24) }),
		},
		"alignment kind": {
			built(func(b *gguftest.Builder) { b.Set("general.alignment", "x") }),
		},
		"twice a tensor": {
			built(func(b *gguftest.Builder) { b.F32("norm", nil, []float32{1}) }),
		},
		"five dims": {built(func(b *gguftest.Builder) {
			b.F32("x", []int{1, 1, 1, 1, 1},
				[]float32{1})
		})},
		"dim 0": {
			built(func(b *gguftest.Builder) { b.F32("x", []int{3, 0}, nil) }),
		},
		"dim too large": {
			patched("matrix", 4, 1<<62),
		},
		"product": {
			patched("matrix", 4, 1<<59),
		},
		"past the end": {
			patched("matrix", 4, 1<<40),
		},
		"offset": {
			patched("matrix", 24, 1<<63),
		},
		"odd offset": {
			patched("matrix", 24, 33),
		},
		"overlap": {
			patched("matrix", 24, 64),
		},
		"name without end": {
			built(func(b *gguftest.Builder) { b.F32(strings.Repeat("x", 1<<16), []int{1}, []float32{1}) }),
		},
		"half a block": {built(func(b *gguftest.Builder) {
			b.Tensor("x", gguf.Q4_0, []int{4, 48},
				make([]byte, 108))
		})},
	} {
		_, err := gguf.Parse(c.data, "bad.gguf")
		messages.Error(name, err)
	}
}

// Tensors of an unknown type are listed. Each of them extends to the start of the next tensor. They cannot be
// dequantized.
func TestTensorsOfUnknownTypesAreListed(t *testing.T) {
	t.Parallel()
	b := gguftest.New()
	b.F32("a", []int{1}, []float32{1})
	b.Tensor("b", 99, []int{3, 7}, make([]byte, 40))
	b.F32("c", []int{1}, []float32{1})
	b.Tensor("d", 99, []int{5}, make([]byte, 10))
	f := mustParse(t, b.Bytes())
	for name, size := range map[string]int{"b": 64, "d": 10} {
		tensor, err := f.Tensor(name)
		if err != nil || tensor.Size() != size || tensor.Type.String() != "type 99" {
			t.Errorf("%v of %d bytes, %v", tensor, tensor.Size(), err)
		}
		if data, err := tensor.Bytes(); err != nil || len(data) != size {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
		if _, err := gguf.Dequantize(tensor); err == nil {
			t.Errorf("%s was dequantized", name)
		}
	}
	data := small().Bytes()
	at := strings.Index(string(data), "matrix") + len("matrix") + 4 + 2*8 // name, number of dims, dims
	binary.LittleEndian.PutUint32(data[at:], 99)
	binary.LittleEndian.PutUint64(data[at+4:], 1<<40)
	_, err := gguf.Parse(data, "bad.gguf")
	if err == nil || !strings.Contains(err.Error(), "extends past the end of the file") {
		t.Errorf("past the end: %v", err)
	}
}

// String formats a value of any size as one short line.
func TestValuesAreShownInShortLines(t *testing.T) {
	t.Parallel()
	b := gguftest.New()
	long := strings.Repeat("long\n\x1b[2J", 1000)
	eight := func(s string) []string { return slices.Repeat([]string{s}, 8) }
	b.Set("string", long)
	b.Set("strings", slices.Repeat(eight(long), 100))
	b.Set("nested", slices.Repeat([][][]string{slices.Repeat([][]string{eight(long)}, 8)}, 8))
	b.Set("many", make([]uint8, 1<<20))
	f := mustParse(t, b.Bytes())
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		s := v.String()
		if len(s) > 3000 || strings.ContainsAny(s, "\n\x1b") {
			t.Errorf("%s: line of %d bytes: %.200q", key, len(s), s)
		}
	}
}

func TestNestingHasALimit(t *testing.T) {
	t.Parallel()
	b := gguftest.New()
	b.Set("deep", [][][][][]uint8{{{{{1}}}}})
	if _, err := gguf.Parse(b.Bytes(), "deep.gguf"); err == nil ||
		!strings.Contains(err.Error(), "nested more than 4 levels deep") {
		t.Errorf("got %v", err)
	}
}

func TestWrongFileIsNamedByItsKind(t *testing.T) {
	t.Parallel()
	messages := wordingtest.New(t)
	for name, c := range map[string]struct{ data string }{
		"empty":       {""},
		"short":       {"GG"},
		"text":        {"Once upon a time"},
		"cut text":    {strings.Repeat("x", 511) + "é"},
		"html":        {"\n<!DOCTYPE html><html>"},
		"zip":         {"PK\x03\x04\x14\x00"},
		"safetensors": {"\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":1}"},
		"pte":         {"\x30\x00\x00\x00ET12\x00\x00\x00\x00"},
		"config.json": {"{\n  \"model_type\": \"llama\"\n}"},
		"pickle":      {"\x80\x02}q"},
		"lfs":         {"version https://git-lfs.github.com/spec/v1\n"},
		"swapped":     {"FUGG\x00\x00\x00\x03"},
		"old":         {"tjgg\x03\x00\x00\x00"},
		"lower case":  {"gguf\x03\x00\x00\x00"},
		"binary":      {"\x7fELF\x02\x01\x01\x00"},
	} {
		_, err := gguf.Parse([]byte(c.data), "file")
		messages.Error(name, err)
	}
}

func TestOpenMapsAndCloseForgets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "small.gguf")
	if err := os.WriteFile(path, small().Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tensor, err := f.Tensor("norm")
	if err != nil {
		t.Fatal(err)
	}
	values, err := gguf.Dequantize(tensor)
	if diff := cmp.Diff([]float32{1, -2, 3.5}, values); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for range 2 { // a second Close does nothing
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if f.Has("u8") || f.HasTensor("norm") || len(f.Tensors()) != 0 {
		t.Error("a closed file still has metadata or tensors")
	}
	// The file is unmapped: access to the old mapping would crash the process.
	if _, err := tensor.Bytes(); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), `"norm"`) {
		t.Errorf("bytes of a tensor after Close: %v", err)
	}
	if _, err := gguf.Dequantize(tensor); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a tensor's elements after Close: %v", err)
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := gguf.Open(filepath.Join(dir, "absent.gguf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
	if _, err := gguf.Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("folder: %v", err)
	}
	empty := filepath.Join(dir, "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gguf.Open(empty); err == nil || !strings.Contains(err.Error(), "the file is empty") {
		t.Errorf("empty: %v", err)
	}
}

func TestEveryTypeHasANameAndASize(t *testing.T) {
	t.Parallel()
	known := 0
	for typ := range gguf.Type(64) {
		if !typ.Known() {
			if got, want := typ.String(), fmt.Sprintf("type %d", uint32(typ)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			continue
		}
		known++
		if typ.BlockBytes() <= 0 || strings.Contains(typ.String(), " ") {
			t.Errorf("%v: %d bytes a block", typ, typ.BlockBytes())
		}
	}
	if known < 33 {
		t.Errorf("%d types are known, want 33 or more", known)
	}
}

func mustParse(t testing.TB, data []byte) *gguf.File {
	t.Helper()
	f, err := gguf.Parse(data, "small.gguf")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// readEverything parses a file and calls every accessor. The fuzz test calls it.
func readEverything(data []byte) {
	f, err := gguf.Parse(data, "fuzz.gguf")
	if err != nil {
		return
	}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		_, _, _ = v.Any(), v.String(), v.Type()
		_, _ = f.Strings(key)
		_, _ = f.Ints(key)
	}
	for _, tensor := range f.Tensors() {
		if tensor.Size() < 1<<20 {
			_, _ = gguf.Dequantize(tensor)
		}
		_ = tensor.String()
	}
}

// longArray returns a file whose only metadata value is an array under the key k. The array has n zero values
// of the given kind, with size bytes each.
func longArray(n int, kind gguf.Kind, size int) []byte {
	data := []byte("GGUF\x03\x00\x00\x00")
	for _, count := range []uint64{0, 1, 1} { // tensors, pairs, bytes of the key
		data = binary.LittleEndian.AppendUint64(data, count)
	}
	data = append(data, 'k', byte(gguf.KindArray), 0, 0, 0, byte(kind), 0, 0, 0)
	data = binary.LittleEndian.AppendUint64(data, uint64(n))
	return append(data, make([]byte, n*size)...)
}

// A sparse file can hold an array that is longer than memory. No vocabulary is that long, so such arrays are
// refused.
func TestArraysLongerThanAVocabularyAreNotTaken(t *testing.T) {
	f, err := gguf.Parse(longArray(1<<22+1, gguf.KindUint8, 1), "long.gguf")
	if err != nil {
		t.Fatal(err)
	}
	messages := wordingtest.New(t)
	_, err = f.Ints("k")
	messages.Error("bytes", err)
	_, err = gguf.Parse(longArray(1<<22+1, gguf.KindString, 8), "long.gguf")
	messages.Error("strings", err)
}

// Refusing an array in place of a scalar does not read the values of the array.
func TestArrayInPlaceOfAScalarIsRefused(t *testing.T) {
	f, err := gguf.Parse(longArray(1<<22, gguf.KindUint8, 1), "long.gguf")
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]func() error{
		"integer": func() error { _, err := f.Int("k"); return err },
		"float":   func() error { _, err := f.Float("k"); return err },
		"bool":    func() error { _, err := f.Bool("k"); return err },
	}
	for what, read := range reads {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "must be a") {
			t.Errorf("%s: %v", what, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", what, used)
		}
	}
}
