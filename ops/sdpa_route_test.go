package ops

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
)

func TestSDPARouteFollowsLiveTokensAndPositions(t *testing.T) {
	for _, headDim := range []int{64, 132} {
		c := attention{qHeads: 32, kvHeads: 8, headDim: headDim, tokens: 512, context: 4096}
		if headDim > sdpaRoomy {
			c.tokens = 256
		}
		for _, want := range []struct {
			tokens, position int
			Route            string
			reason           kind.Reason
			groups           int64 // workgroups of the streaming kernel
		}{
			{1, 0, "decoding", kind.FewPositions, 0},
			{1, 4095, "flash_decoding", kind.OneToken, 0},
			{2, 0, "streaming", kind.ManyTokens, 8},
			{2, 509, "streaming", kind.ManyTokens, 8},
			{2, 510, "split_streaming", kind.FewTokens, 32},
			{16, 4080, "split_streaming", kind.FewTokens, 256},
			{17, 4079, "split_streaming", kind.FewTokens, 240},
			{64, 4032, "split_streaming", kind.FewTokens, 256},
			{65, 4031, "streaming", kind.ManyTokens, 72},
			{512, 0, "streaming", kind.ManyTokens, 512},
		} {
			if want.tokens > c.tokens {
				continue
			}
			if headDim > sdpaRoomy && want.tokens > 1 {
				want.Route, want.reason, want.groups = "materialized", kind.WideHead, 0
			}
			c.live = [][2]int{{want.tokens, want.position}}
			trial := c.trial()
			g := finish(t, trial)
			live := liveAt(t, g, trial.input(t, g, trial.steps[0]))
			plans, _ := live.Step()
			groups, described := int64(0), g.Describe()
			for _, id := range live.Active() {
				if launch, _ := live.Launch(id); described.Dispatches[id].Label == "streaming" {
					groups = launch.Grid.Groups
				}
			}
			got := plans[0]
			if got.Route != want.Route || got.Reason != want.reason.String() || groups != want.groups {
				t.Errorf("heads of %d, %d tokens at %d: %s (%s), %d workgroups, want %s (%s), %d",
					headDim, want.tokens, want.position, got.Route, got.Reason, groups, want.Route,
					want.reason, want.groups)
			}
		}
	}
}

// Few positions run in one workgroup. More positions are split into whole blocks, up to as many workgroups as
// the device runs at once.
func TestOneTokenIsSplitByVisiblePositions(t *testing.T) {
	const heads = 8 // workgroups for each split
	for _, window := range []int{0, 600} {
		c := attention{qHeads: 32, kvHeads: 8, headDim: 128, tokens: 1, context: 8192, window: window}
		for _, want := range []struct {
			position, splits int
		}{{0, 0}, {383, 0}, {384, 25}, {511, 32}, {512, 17}, {599, 19}, {1023, 32}, {4095, 32}, {8191, 32}} {
			if c.live = [][2]int{{1, want.position}}; window > 0 && want.position >= window {
				want.splits = 19
			}
			trial := c.trial()
			g := finish(t, trial)
			live := liveAt(t, g, trial.input(t, g, trial.steps[0]))
			var groups []int64
			for _, id := range live.Active() {
				launch, _ := live.Launch(id)
				groups = append(groups, launch.Grid.Groups)
			}
			expect := []int64{heads * int64(want.splits), 32}
			if want.splits == 0 {
				expect = []int64{32}
			}
			if !slices.Equal(groups, expect) {
				t.Errorf("position %d, window %d: workgroups %v, want %v", want.position, window, groups,
					expect)
			}
		}
	}
}

func TestSDPARoutesAsked(t *testing.T) {
	c := attention{
		qHeads: 6, kvHeads: 2, headDim: 24, tokens: 20, context: 200,
		live: [][2]int{{20, 0}, {1, 20}, {1, 199}}, Route: "materialized",
	}
	hold(t, c.trial())
	c.tokens = 1
	for _, c.Route = range []string{"flash_decoding", "decoding"} {
		c.live = [][2]int{{1, 0}, {1, 20}, {1, 199}}
		hold(t, c.trial())
	}
	c.tokens = 20
	c.live = [][2]int{{1, 20}}
	c.Route = "flash_decoding"
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.AskRoutes(c.trial().Routes)
	c.trial().build(b)
	_, err := b.Finish()
	want := graph.RouteLimit{Route: "flash_decoding", Of: "S", Most: 1, Work: 20}
	if limit, ok := errors.AsType[*graph.RouteLimit](err); !ok || *limit != want {
		t.Errorf("flash_decoding for 20 tokens: %v", err)
	}
}

// A graph allocates enough memory for splits at every position. The number of splits is not largest where the
// most positions are visible.
func TestAttentionHasRoomAtEveryPosition(t *testing.T) {
	for _, c := range []attention{
		{qHeads: 48, kvHeads: 3, headDim: 16, tokens: 1, context: 673},
		{qHeads: 6, kvHeads: 2, headDim: 256, tokens: 1, context: 1501},
		{qHeads: 64, kvHeads: 8, headDim: 128, tokens: 1, context: 450}, // static mode splits everywhere
	} {
		plansEverywhere(t, c, false, 1)
		plansEverywhere(t, c, true, 1)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := attention{
			kvHeads: rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(t, "kv heads"),
			headDim: rapid.SampledFrom([]int{16, 64, 128, 256, 512}).Draw(t, "head dim"),
			context: 100*draw(t, "hundreds", 0, 15) + draw(t, "context", 1, 100),
		}
		c.qHeads = c.kvHeads * rapid.SampledFrom([]int{1, 3, 4, 8, 16}).Draw(t, "queries of a head")
		c.tokens = draw(t, "tokens", 1, min(c.context, 600))
		if rapid.Bool().Draw(t, "windowed") {
			c.window = draw(t, "window", 1, c.context+1)
		}
		if rapid.Bool().Draw(t, "one token") {
			c.tokens, c.Route = 1, "flash_decoding"
		}
		plansEverywhere(t, c, rapid.Bool().Draw(t, "static"), 1, draw(t, "live tokens", 1, c.tokens))
	})
}

// plansEverywhere plans steps of the given numbers of tokens at all positions.
func plansEverywhere(t failer, c attention, static bool, tokens ...int) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.AskRoutes(c.trial().Routes)
	c.build(b)
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	live := liveOf(t, g, graph.LiveOptions{Static: static})
	for _, n := range tokens {
		in := (&trial{}).input(t, g, c.step(n, 0))
		for position := range int64(c.context - n + 1) {
			in.SymInts[0].Int = position
			if err := bring(live, in); err != nil {
				t.Fatalf("%d tokens at %d: %v", n, position, err)
			}
		}
	}
}
