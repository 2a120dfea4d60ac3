package model

import (
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/x448/float16"

	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/npy"
	"gpuscope/session"
	"gpuscope/trace"
)

// saved writes a value to a file with the given suffix and returns the reply.
func (r *rig) saved(at session.LookAt, path string) *session.Saved {
	r.t.Helper()
	reply, err := r.s.Do(context.Background(), session.Command{
		Kind: session.Save, At: &at, Save: &session.SaveTo{Path: path},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return reply.Saved
}

// elements returns the elements of an array as float64.
func elements(t *testing.T, a *npy.Array) []float64 {
	t.Helper()
	var list []float64
	for data, size := a.Data, a.Type.Size(); len(data) > 0; data = data[size:] {
		switch a.Type {
		case npy.Float64:
			list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(data)))
		case npy.Float32:
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
		case npy.Float16:
			list = append(list, float64(float16.Frombits(binary.LittleEndian.Uint16(data)).Float32()))
		case npy.Int32:
			list = append(list, float64(int32(binary.LittleEndian.Uint32(data))))
		case npy.Uint32:
			list = append(list, float64(binary.LittleEndian.Uint32(data)))
		default:
			t.Fatalf("type %s", a.Type)
		}
	}
	return list
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// A saved value is read back and compared with the elements that a look returns, in both formats.
func TestSavedValuesAreReadBack(t *testing.T) {
	r := newRig(t, Options{HalfKV: true, Fuse: "off"})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	wild := []float32{1.5, -3e-12, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1.0 / 3}
	r.replays(func(i int) float32 {
		if i < len(wild) {
			return wild[i]
		}
		return 0.1 * float32(i)
	})
	zero := 0
	dir := t.TempDir()
	for _, test := range []struct {
		value string
		typ   npy.Type
		at    session.LookAt
	}{
		{"embed", npy.Float32, session.LookAt{}},
		{"embed", npy.Float32, session.LookAt{Step: &zero}},
		{"tokens", npy.Int32, session.LookAt{Step: &zero}},
		{"layers.0.k_cache", npy.Float16, session.LookAt{}},
		{"token_embd.weight", npy.Float32, session.LookAt{}}, // stored in Q4_0
		{"embed", npy.Float64, session.LookAt{Baseline: &session.BaselineAt{Step: zero}}},
	} {
		at := test.at
		at.Value = r.value(test.value)
		look := at
		look.Count = session.MostNumbers
		want := r.look(look)
		base := filepath.Join(dir, strconv.Itoa(len(glob(t, dir))))
		out := r.saved(at, base+".npy")
		a, err := npy.Read(base + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if a.Type != test.typ || !slices.Equal(a.Dims, want.Dims) || out.Type != test.typ.NumPy() {
			t.Errorf("%s: %s %v, want %s %v; %+v", test.value, a.Type, a.Dims, test.typ, want.Dims, out)
		}
		got := elements(t, a)
		r.saved(at, base+".CSV")
		bits := 64
		if test.typ == npy.Float32 || test.typ == npy.Float16 {
			bits = 32
		}
		rows, columns := records(t, base+".CSV", bits)
		if n := len(want.Dims); columns != want.Dims[n-1] || len(rows) != len(got) {
			t.Errorf("%s: %d columns and %d numbers of %v", test.value, columns, len(rows), want.Dims)
		}
		for i, w := range want.Numbers {
			f := float64(w)
			if test.typ == npy.Float32 {
				f = float64(float32(f)) // weights are decoded as float64
			}
			if !same(got[i], f) || !same(rows[i], f) {
				t.Fatalf("%s: element %d is %v and %v, want %v", test.value, i, got[i], rows[i], f)
			}
		}
		if info, err := os.Stat(base + ".npy"); err != nil || info.Size() != out.Bytes {
			t.Errorf("%s: %v, %v, want %d bytes", test.value, info, err, out.Bytes)
		}
	}
}

// records returns the numbers in a text, which have the given number of bits, and the number of columns.
func records(t *testing.T, path string, bits int) (list []float64, columns int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all {
		for _, word := range row {
			v, err := strconv.ParseFloat(word, bits)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		columns = len(row)
	}
	return list, columns
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A save writes the value as it is after the dispatch that the user chose.
func TestASaveReadsAfterTheChosenDispatch(t *testing.T) {
	r := newRig(t, Options{Fuse: "off"})
	r.do(promptOf(5))
	third := trace.DispatchID(2)
	before := r.dev.Count(fake.Run)
	r.saved(session.LookAt{Value: r.value("tokens"), After: &third}, filepath.Join(t.TempDir(), "a.npy"))
	if n := r.dev.Count(fake.Run) - before; n != 3 {
		t.Errorf("%d dispatches ran, want 3", n)
	}
}

// A save that cannot be completed leaves no file, and never replaces one.
func TestASaveIsCompleteOrLeavesNothing(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	dir := t.TempDir()
	path := filepath.Join(dir, "a.npy")
	save := func(ctx context.Context, path string) error {
		at := session.LookAt{Value: r.value("embed")}
		return r.try(ctx, session.Command{Kind: session.Save, At: &at, Save: &session.SaveTo{Path: path}})
	}
	fault := errors.New("injected")
	r.dev.FailNth(fake.CopyOut, 1, fault)
	if err := save(context.Background(), path); !errors.Is(err, fault) {
		t.Errorf("a copy that fails: %v", err)
	}
	err := save(context.Background(), filepath.Join(dir, "missing", "a.npy"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if left := glob(t, dir); len(left) != 0 {
		t.Errorf("files are left: %v", left)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	runs := r.dev.Count(fake.Run)
	err = save(context.Background(), path)
	if !errors.Is(err, session.ErrUsage) || r.dev.Count(fake.Run) != runs {
		t.Errorf("a file that exists: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Error("the file was replaced")
	}
}
