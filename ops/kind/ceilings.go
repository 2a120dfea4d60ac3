package kind

import (
	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// Ceilings returns the kernels that measure a device's ceilings, such as its memory bandwidth and its
// arithmetic throughput. In the kernel for multiply-adds, each invocation adds up several independent sums:
// enough for 256 invocations to keep a compute unit busy.
func Ceilings() (*graph.CeilingKernels, error) {
	const sums, unroll = 8, 4
	k := &graph.CeilingKernels{FlopsPerRound: 2 * 4 * sums * unroll}
	for _, t := range []struct {
		of       **graph.Kernel
		template string
		c        shaders.Constants
	}{
		{&k.Fill, "ceiling_fill", shaders.Constants{"Lanes": 256}},
		{&k.Copy, "ceiling_copy", shaders.Constants{"Lanes": 256}},
		{&k.FMA, "ceiling_fma", shaders.Constants{"Lanes": 256, "Sums": sums, "Unroll": unroll}},
		{&k.Empty, "ceiling_empty", shaders.Constants{"Lanes": 64}},
	} {
		expanded, err := shaders.Expand(t.template, t.c)
		if err != nil {
			return nil, err
		}
		if *t.of, err = FromSource(t.template, expanded); err != nil {
			return nil, err
		}
	}
	return k, nil
}
