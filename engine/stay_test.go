package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// emptyKernel may write its buffer but does not change it.
var emptyKernel = &graph.Kernel{
	Name: "empty", WorkgroupSize: [3]uint32{1, 1, 1},
	Source: `@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn main() { if (arrayLength(&x) == 0u) { x[0] = 1u; } }`,
	Storage: []graph.Storage{{Name: "x", Elem: "u32", Access: gpu.ReadWrite}},
}

// If a link of a chain is skipped, a barrier remains in its place.
func TestLevelsStayApartWithoutALink(t *testing.T) {
	r := newRig(t, fake.Options{Info: gpu.AdapterInfo{Name: "GPU", Type: gpu.Discrete}})
	var ran []string
	r.dev.OnDispatch = func(d fake.Dispatch) {
		if d.Pipeline != emptyKernel.Name {
			compute(d)
		}
		ran = append(ran, d.Pipeline)
	}
	r.mustStep(t, 7, 5)
	active, whole := slices.Clone(r.x.Live().Active()), slices.Clone(ran)
	if n := r.dev.Levels(); n != len(active) {
		t.Fatalf("%d dispatches in %d levels, want a chain", len(active), n)
	}
	for i := range active {
		for _, c := range []struct {
			empty *graph.Kernel
			want  []string
		}{
			{nil, slices.Delete(slices.Clone(whole), i, i+1)},
			{emptyKernel, slices.Delete(slices.Clone(whole), i, i+1)},
		} {
			m, err := r.x.newCostRun([][]trace.DispatchID{{active[i]}}, &CostOptions{Empty: c.empty})
			if err != nil {
				t.Fatal(err)
			}
			ran = ran[:0]
			if _, err := m.run(context.Background(), &m.sets[0]); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(slices.Clone(ran), func(k string) bool { return k == emptyKernel.Name })
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("without dispatch %d (-want +got):\n%s", i, d)
			}
			if n := r.dev.Levels(); c.empty != nil && n != len(active)-1 {
				t.Errorf("without dispatch %d: %s in %d levels, want %d", i, strings.Join(ran, " "), n,
					len(active)-1)
			}
			if _, err := m.run(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			if n := r.dev.Levels(); n != len(active) {
				t.Errorf("the whole step has %d levels after a run without dispatch %d", n, i)
			}
			m.release()
		}
	}
	if d := cmp.Diff(r.want(7, 5), r.output(t)); d != "" {
		t.Error(d)
	}
}

// For any graph and any set of skipped dispatches, dispatches from different levels stay in different levels.
// No other barriers are added.
func TestLevelsStayApartWithoutAnySet(t *testing.T) {
	graphtest.Draws(t, 300)
	rapid.Check(t, func(t *rapid.T) {
		dev := fake.New(fake.Options{Info: gpu.AdapterInfo{Name: "GPU", Type: gpu.Discrete}})
		defer dev.Release()
		r := newRandomRun(t, dev)
		defer r.x.Release()
		r.x.firstPiece = 1 << 30
		if _, goes := r.step(t, TimingStep); !goes {
			return
		}
		active := r.x.Live().Active()
		set := rapid.SliceOfN(rapid.SampledFrom(active), 1, len(active)).Draw(t, "set")
		counts := map[bool]int{}
		for _, stays := range []bool{false, true} {
			o := &CostOptions{}
			if stays {
				o.Empty = emptyKernel
			}
			m, err := r.x.newCostRun([][]trace.DispatchID{set}, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.cuts) > 1 {
				m.cuts = []int{len(active)} // one submit, because the device counts levels per submit
				m.sets[0].stays = nil
				if stays {
					if err := m.findStays(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := m.run(context.Background(), &m.sets[0]); err != nil {
				t.Fatal(err)
			}
			if counts[stays] = dev.Levels(); len(m.kept) == 0 {
				counts[stays] = 0
			}
			if n := len(m.sets[0].stays); stays && counts[true] != counts[false]+n {
				t.Fatalf("%d levels, %d with %d barriers that stay", counts[false], counts[true], n)
			}
			if stays {
				levels := map[int]bool{}
				for _, id := range m.kept {
					levels[m.stayer.level(id)] = true
				}
				if counts[true] < len(levels) {
					t.Fatalf("%d levels of the step became %d", len(levels), counts[true])
				}
			}
			m.release()
		}
	})
}

// The native library accepts the empty dispatches, and they do not change the results.
func TestKeptBarriersChangeNoResults(t *testing.T) {
	onDevice(t, func(t *rapid.T, dev gpu.Device) {
		r := newRandomRun(t, dev)
		defer r.x.Release()
		want, goes := r.step(t, TimingStep)
		if !goes {
			return
		}
		set := rapid.SliceOfN(rapid.SampledFrom(r.x.Live().Active()), 1, 6).Draw(t, "set")
		m, err := r.x.newCostRun([][]trace.DispatchID{set}, &CostOptions{Empty: emptyKernel})
		if err != nil {
			t.Fatal(err)
		}
		if m.stayer == nil { // on a software device
			if err := m.findStays(); err != nil {
				t.Fatal(err)
			}
		}
		defer m.release()
		for _, without := range []*absent{&m.sets[0], nil} {
			if _, err := m.run(context.Background(), without); err != nil {
				t.Fatal(err)
			}
		}
		for _, v := range r.x.g.Outputs() {
			got := make([]byte, r.x.LiveSize(v))
			if err := r.x.ReadValue(v, got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[v], graphtest.Words(got)); d != "" {
				t.Fatalf("%s (-want +got):\n%s", r.x.g.Values[v].Name, d)
			}
		}
	})
}
