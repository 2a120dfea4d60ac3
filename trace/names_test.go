package trace_test

import (
	"testing"

	"gpuscope/trace"
)

func TestNamesWithoutLayerAndBlock(t *testing.T) {
	three := 3
	for _, c := range []struct {
		op           trace.Op
		short, place string
	}{
		{trace.Op{Name: "layers.3.attn.q", Layer: &three, Block: "attn"}, "q", "attn.q"},
		{trace.Op{Name: "attn.q", Layer: &three, Block: "attn"}, "q", "attn.q"},
		{trace.Op{Name: "blk.3.norm", Layer: &three}, "norm", "norm"},
		{trace.Op{Name: "blk.3.sdpa.cache_k", Layer: &three}, "sdpa.cache_k", "sdpa.cache_k"},
		{trace.Op{Name: "attn", Block: "attn"}, "attn", "attn"},
		{trace.Op{Name: "select last"}, "select last", "select last"},
		{trace.Op{Name: "a.b"}, "a.b", "a.b"},
		{trace.Op{}, "", ""},
	} {
		if short, place := c.op.ShortName(), c.op.Place(); short != c.short || place != c.place {
			t.Errorf("%q: %q and %q, want %q and %q", c.op.Name, short, place, c.short, c.place)
		}
	}
}

func TestDispatchNameHasOperatorAndSlot(t *testing.T) {
	one, split := trace.Dispatch{}, trace.Dispatch{Label: "split"}
	if a, b := one.Named("attn.q"), split.Named("attn.sdpa"); a != "attn.q" || b != "attn.sdpa.split" {
		t.Errorf("%q and %q", a, b)
	}
}
