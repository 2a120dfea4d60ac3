package gguf_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/x448/float16"
	"pgregory.net/rapid"

	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

func TestFloat16OfAllBits(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 16 {
		got, want := gguf.Float16(uint16(bits)), float16.Frombits(uint16(bits)).Float32()
		if math.IsNaN(float64(want)) && math.IsNaN(float64(got)) {
			continue // the quiet bit may differ
		}
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%#04x: got %v, want %v", bits, got, want)
		}
	}
}

func TestQ4_0BlockHasLowNibblesFirst(t *testing.T) {
	t.Parallel()
	var block [gguf.Q4_0BlockBytes]byte
	block[1] = 0x38 // 0.5
	for j := range 16 {
		block[2+j] = byte(j) | byte(15-j)<<4
	}
	scale, q := gguf.DecodeQ4_0(&block)
	want := [32]int8{}
	for j := range 16 {
		want[j], want[16+j] = int8(j-8), int8(7-j)
	}
	if scale != 0.5 || q != want {
		t.Errorf("got %v %v, want 0.5 %v", scale, q, want)
	}
	if string(gguftest.Q4_0Block(0x3800, q)) != string(block[:]) {
		t.Error("the writer's block differs")
	}
}

func TestWrittenTensorsAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := gguftest.New()
		b.Alignment = 1 << rapid.IntRange(0, 7).Draw(t, "alignment")
		type written struct {
			name   string
			dims   []int
			values []float32
			within float64 // tolerance relative to the largest value in each block of 32
		}
		var all []written
		for i := range rapid.IntRange(0, 5).Draw(t, "tensors") {
			w := written{
				name: string(rune('a' + i)),
				dims: rapid.SliceOfN(rapid.IntRange(1, 4), 0, 3).Draw(t, "dims"),
			}
			kind := rapid.SampledFrom([]string{"F32", "F16", "Q4_0"}).Draw(t, "type")
			if kind == "Q4_0" {
				w.dims = append(w.dims, 32*rapid.IntRange(1, 3).Draw(t, "blocks"))
			}
			n := 1
			for _, d := range w.dims {
				n *= d
			}
			w.values = rapid.SliceOfN(rapid.Float32Range(-100, 100), n, n).Draw(t, "values")
			switch kind {
			case "F32":
				b.F32(w.name, w.dims, w.values)
			case "F16":
				b.F16(w.name, w.dims, w.values)
				w.within = 1.0 / 2048
			case "Q4_0":
				b.Q4_0(w.name, w.dims, w.values)
				// one quantization step at the positive end of the range, plus the rounding of the scale
				w.within = 1.0/8 + 1.0/1024
			}
			all = append(all, w)
		}
		f, err := gguf.Parse(b.Bytes(), "written.gguf")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			tensor, err := f.Tensor(w.name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]int{}, w.dims...), tensor.Dims); diff != "" {
				t.Fatal(diff)
			}
			got, err := gguf.Dequantize(tensor)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				largest := 1e-4 // half precision is coarser near zero
				for _, x := range w.values[i/32*32 : min(i/32*32+32, len(w.values))] {
					largest = max(largest, math.Abs(float64(x)))
				}
				if d := math.Abs(float64(v) - float64(w.values[i])); d > w.within*largest {
					t.Fatalf("%v: element %d is %v, want %v within %v", tensor, i, v, w.values[i],
						w.within*largest)
				}
			}
		}
	})
}

func TestWrittenMetadataIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.Uint8().AsAny(), rapid.Int8().AsAny(), rapid.Uint16().AsAny(), rapid.Int16().AsAny(),
			rapid.Uint32().AsAny(), rapid.Int32().AsAny(),
			rapid.Uint64().AsAny(), rapid.Int64().AsAny(), rapid.Float32().AsAny(), rapid.Float64().AsAny(),
			rapid.Bool().AsAny(), rapid.String().AsAny())
		want := rapid.MapOf(rapid.StringMatching(`[a-z_.]{1,20}`), value).Draw(t, "metadata")
		b := gguftest.New()
		for key, v := range want {
			b.Set(key, v)
		}
		f, err := gguf.Parse(b.Bytes(), "written.gguf")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, key := range f.Keys() {
			v, _ := f.Value(key)
			got[key] = v.Any()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
