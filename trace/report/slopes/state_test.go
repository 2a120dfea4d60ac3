package slopes

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/table"
)

// hybrid is decoded with state. The dispatch of sdpa uses two KV caches of 32 bytes for each of 256
// positions. The dispatch of norm uses recurrent states of 400 and 6,000 bytes, of which memory holds 3.
func hybrid() *trace.Trace {
	tr := decoded(20, trace.TimingDispatch)
	g := &tr.Graph
	add := func(name string, recurrent bool, bytes int64, dims ...int) trace.ValueID {
		id := trace.ValueID(len(g.Values))
		g.Values = append(g.Values, trace.Value{
			ID: id, Name: name, Kind: "tensor", DType: "f32", MaxDims: dims, Bytes: bytes,
			Role: trace.RoleState, Recurrent: recurrent,
		})
		return id
	}
	k, v := add("k_cache", false, 8192, 1, 256, 2, 4), add("v_cache", false, 8192, 1, 256, 2, 4)
	conv, delta := add("conv_state", true, 1200, 3, 100), add("state", true, 18000, 3, 5, 10, 30)
	add("position", false, 4)
	g.Ops[0].State, g.Dispatches[0].Reads = []trace.ValueID{k, v}, []trace.ValueID{k, v}
	g.Ops[1].State = []trace.ValueID{conv, delta}
	g.Dispatches[1].Reads, g.Dispatches[1].Writes = []trace.ValueID{conv}, []trace.ValueID{conv, delta}
	return tr
}

func curvesOf(t *testing.T, tr *trace.Trace, along string) *curves.Curves {
	t.Helper()
	if err := tr.Check(); err != nil {
		t.Fatal(err)
	}
	c, err := curves.Of(context.Background(), analyze.NewIndex(tr), along, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRecurrentStateIsConstantAndTheKVCacheGrows(t *testing.T) {
	c := curvesOf(t, hybrid(), trace.AlongPosition)
	whole := &c.Rows[0]
	if whole.State.Recurrent != 6400 || whole.State.Slots != 3 {
		t.Errorf("recurrent state %d in %d slots, want 6400 in 3", whole.State.Recurrent, whole.State.Slots)
	}
	for at, want := range map[int]float64{0: 64, 9: 640, 255: 16384, 256: 16384} {
		if got, ok := c.Exact(whole, curves.Stored, at); !ok || got != want {
			t.Errorf("KV cache at position %d: %g bytes, want %g", at, got, want)
		}
	}
	if at, ok := c.Crossing(whole.State); !ok || at != 100 { // 101 tokens use 6,464 bytes
		t.Errorf("the two cross at position %d, want 100", at)
	}
	if at, ok := curvesOf(t, hybrid(), trace.AlongTokens).Crossing(whole.State); ok {
		t.Errorf("the two cross at %d tokens, want no crossing up to 32", at)
	}
	for _, r := range c.Rows[1:] {
		_, cached := c.Exact(&r, curves.Stored, 0)
		if sdpa := strings.HasPrefix(r.Name, "sdpa"); cached != sdpa || r.State.Recurrent > 0 == sdpa {
			t.Errorf("%s: KV cache %t, recurrent state of %d bytes", r.Name, cached, r.State.Recurrent)
		}
	}
}

func TestStateTableHasTheNumbersOfThePicture(t *testing.T) {
	c := curvesOf(t, hybrid(), trace.AlongPosition)
	made := StateTable(c)
	positions := 0
	for row := range made.Rows {
		number := func(name string) table.Cell { return made.Cell(row, made.Column(name)) }
		at := int(number("position").Number)
		if made.Cell(row, 0).Text != "whole step" {
			if at != c.To || number("ratio").Has {
				t.Errorf("row %d: an operator at position %d with ratio %+v", row, at, number("ratio"))
			}
			continue
		}
		positions++
		cache := float64(64 * (at + 1))
		if number("recurrent").Number != 6400 || number("cache").Number != cache ||
			number("ratio").Number != cache/6400 {
			t.Errorf("position %d: recurrent %+v, cache %+v, ratio %+v", at, number("recurrent"),
				number("cache"), number("ratio"))
		}
	}
	// 0, the powers of two up to 128, the crossing at 100, and the last position
	if positions != 11 || len(made.Rows) != 13 {
		t.Errorf("%d rows, %d of them of the whole step", len(made.Rows), positions)
	}
}

func TestGraphsWithoutRecurrentStateHaveNoPictureOfState(t *testing.T) {
	tr := hybrid()
	if c := curvesOf(t, tr, trace.AlongPosition); !slices.Contains(c.Quantities(), curves.Stored) {
		t.Error("a hybrid model has no picture of state")
	}
	for i := range tr.Graph.Values {
		tr.Graph.Values[i].Recurrent = false
	}
	c := curvesOf(t, tr, trace.AlongPosition)
	if slices.Contains(c.Quantities(), curves.Stored) || c.Rows[0].State != nil {
		t.Error("a model without recurrent state has a picture of state")
	}
	if made := StateTable(c); len(made.Rows) != 0 || len(made.Notes) != 1 {
		t.Errorf("%d rows and %d notes, want a note only", len(made.Rows), len(made.Notes))
	}
}
