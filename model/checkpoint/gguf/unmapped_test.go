package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gpuscope/internal/mapfile"
)

// openUnmapped opens a file as Open does if the file cannot be mapped.
func openUnmapped(path string) (*File, error) {
	from, err := mapfile.OpenUnmapped(path)
	if err != nil {
		return nil, err
	}
	return read(from, path)
}

// large writes a sparse file with metadata of metaBytes, a tensor of tensorBytes, and after it a tensor of
// four floats.
func large(t *testing.T, metaBytes, tensorBytes int) string {
	t.Helper()
	le := binary.LittleEndian
	text := func(out []byte, s string) []byte { return append(le.AppendUint64(out, uint64(len(s))), s...) }
	out := le.AppendUint32([]byte(magic), maxVersion)
	out = le.AppendUint64(le.AppendUint64(out, 2), 1)
	out = le.AppendUint32(text(out, "long"), uint32(KindString))
	out = text(out, strings.Repeat("x", metaBytes))
	tensor := func(name string, elements, offset int) {
		out = le.AppendUint64(le.AppendUint32(text(out, name), 1), uint64(elements))
		out = le.AppendUint64(le.AppendUint32(out, uint32(F32)), uint64(offset))
	}
	tensor("large", tensorBytes/4, 0)
	tensor("last", 4, tensorBytes)
	start := (len(out) + defaultAlignment - 1) / defaultAlignment * defaultAlignment
	path := filepath.Join(t.TempDir(), "large.gguf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(out); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("0123456789abcdef"), int64(start+tensorBytes)); err != nil {
		t.Skipf("cannot create a sparse file: %v", err)
	}
	return path
}

// heapOf returns the number of bytes that do allocates, including those that are freed again.
func heapOf(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestUnmappableFileIsReadTensorByTensor(t *testing.T) {
	const size = 6 << 30
	path := large(t, 3<<20, size)
	used := heapOf(func() {
		f, err := openUnmapped(path)
		if err != nil {
			t.Fatal(err)
		}
		if long, err := f.String("long"); err != nil || len(long) != 3<<20 {
			t.Errorf("metadata of %d bytes, %v", len(long), err)
		}
		first, err := f.Tensor("large")
		if err != nil || first.Size() != size {
			t.Fatal(first, err)
		}
		last, err := f.Tensor("last")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := last.Bytes(); err != nil || string(data) != "0123456789abcdef" {
			t.Errorf("last tensor %q, %v", data, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := last.Bytes(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("bytes after Close: %v", err)
		}
	})
	if used > 64<<20 {
		t.Errorf("%d MiB were allocated to open a file of %d MiB", used>>20, size>>20)
	}
}

func TestUnmappedFileIsTheMappedOne(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "models", "tokenizers", "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, large(t, 100, 4000)) {
		mapped, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		other, err := openUnmapped(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range mapped.Keys() {
			a, b := mapped.values[key], other.values[key]
			if a.Type() != b.Type() || !bytes.Equal(a.raw, b.raw) {
				t.Errorf("%s: %s is %v, unmapped %v", path, key, a, b)
			}
		}
		for i, tensor := range mapped.Tensors() {
			a, _ := tensor.Bytes()
			b, err := other.Tensors()[i].Bytes()
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: %v differs, %v", path, tensor, err)
			}
		}
		if err := errors.Join(mapped.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A damaged file causes the same error whether the file is mapped or read.
func TestUnmappedFileCutAnywhereIsRefusedAlike(t *testing.T) {
	path := large(t, 100, 4000)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := info.Size() - 1; n >= 0; n -= 7 {
		if err := os.Truncate(path, n); err != nil {
			t.Fatal(err)
		}
		_, want := Open(path)
		_, got := openUnmapped(path)
		if want == nil || got == nil || want.Error() != got.Error() {
			t.Fatalf("cut at %d: %v, unmapped %v", n, want, got)
		}
	}
}

func TestMetadataIsBounded(t *testing.T) {
	path := large(t, 100, 4000)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The string claims to extend past the limit, and the file is long enough for that.
	at := int64(len(magic) + 4 + 8 + 8 + 8 + len("long") + 4)
	if _, err := file.WriteAt(binary.LittleEndian.AppendUint64(nil, maxHead), at); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(2 * maxHead); err != nil {
		t.Skipf("cannot create a sparse file: %v", err)
	}
	for name, open := range map[string]func(string) (*File, error){"mapped": Open, "unmapped": openUnmapped} {
		if _, err := open(path); err == nil || !strings.Contains(err.Error(), "take more than 256 MiB") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
