package trace_test

import (
	"testing"

	"gpuscope/trace"
)

func TestShortNamesLeaveOutLayerAndBlock(t *testing.T) {
	three := 3
	for _, c := range []struct {
		op   trace.Op
		want string
	}{
		{trace.Op{Name: "layers.3.attn.q", Layer: &three, Block: "attn"}, "q"},
		{trace.Op{Name: "attn.q", Layer: &three, Block: "attn"}, "q"},
		{trace.Op{Name: "blk.3.norm", Layer: &three}, "norm"},
		{trace.Op{Name: "blk.3.sdpa.cache_k", Layer: &three}, "sdpa.cache_k"},
		{trace.Op{Name: "attn", Block: "attn"}, "attn"},
		{trace.Op{Name: "select last"}, "select last"},
		{trace.Op{Name: "a.b"}, "a.b"},
		{trace.Op{}, ""},
	} {
		if got := c.op.ShortName(); got != c.want {
			t.Errorf("%q: %q, want %q", c.op.Name, got, c.want)
		}
	}
}
