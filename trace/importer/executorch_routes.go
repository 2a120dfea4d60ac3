package importer

import (
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// route is one of the ways in which the runtime of ExecuTorch runs an operator: its dispatches, in order.
type route []part

// part is a dispatch of a route. Its place among all dispatches of the operator is the same in all routes.
type part struct {
	place  int
	label  string
	kernel string // beginning of the kernel's name
	// nameless is set if the runtime may print no name for the kernel.
	nameless bool
}

func (p part) fits(kernel string) bool {
	return strings.HasPrefix(kernel, p.kernel) || p.nameless && kernel == unnamed
}

// silent holds the kinds of operators that have no dispatch: the runtime uploads their results, copies
// buffers, or computes their results on the host. Kinds that begin with "sym_" have no dispatch either.
var silent = []string{
	"prepack", "select_as_symint", "view_copy", "clone", "alias_copy", "squeeze_copy", "unsqueeze_copy",
	"_clone_dim_order", "_to_dim_order_copy",
}

// several holds the routes of the kinds of operators that have more than one dispatch.
var several = map[string][]route{
	"apply_rotary_emb":    {rotary},
	"apply_rotary_emb_hf": {rotary},
	"sdpa_with_kv_cache": {
		attention(part{2, "attn_weights", "sdpa_compute_attn_weights", false},
			part{3, "softmax", "sdpa_softmax", false}, part{4, "out", "sdpa_compute_out", false}),
		attention(part{5, "fd_split", "fd_split", false}, part{6, "fd_reduce", "fd_reduce", false}),
		attention(part{7, "streaming", "sdpa_streaming", false}),
	},
}

var rotary = route{{0, "q", "apply_rotary_emb", true}, {1, "k", "apply_rotary_emb", true}}

// attention returns a route of attention. It first adds the new keys and values to the cache, and then has
// the given parts.
func attention(parts ...part) route {
	update := route{{0, "update_k", "update_cache", false}, {1, "update_v", "update_cache", false}}
	return append(update, parts...)
}

// routesOf returns the routes of a kind of operators, or nil if operators of this kind have no dispatch.
// Kinds that are not listed have one dispatch, whose kernel has the name of the kind or no name.
func routesOf(kind string) []route {
	switch {
	case strings.HasPrefix(kind, "sym_") || slices.Contains(silent, kind):
		return nil
	case several[kind] != nil:
		return several[kind]
	}
	return []route{{{kernel: kind, nameless: true}}}
}

// choose returns the route that fits the largest number of the next rows, and this number.
func choose(routes []route, rows []row) (best route, fits int) {
	fits = -1
	for _, route := range routes {
		n := 0
		for n < len(route) && n < len(rows) && route[n].fits(rows[n].kernel) {
			n++
		}
		if n > fits {
			best, fits = route, n
		}
	}
	return best, fits
}

// next describes the kernels that can follow the first parts of a route.
func next(routes []route, first route) string {
	var names []string
	for _, route := range routes {
		if len(route) <= len(first) || !slices.Equal(route[:len(first)], first) {
			continue
		}
		if name := route[len(first)].kernel; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return printable.Choice(names)
}
