package gpu

import (
	"fmt"
	"strconv"
	"strings"
)

// Choose picks an adapter. `want` is the index of the adapter or a part of its name, in upper or lower case.
// If `want` is empty, Choose picks the best type available, in the order discrete, integrated, virtual, cpu,
// unknown. Among equal adapters Choose picks the first. The reason tells the user why this adapter was
// chosen, as a phrase that can follow "chosen: ". If no adapter matches `want`, the error wraps ErrNoAdapter
// and lists the available adapters.
func Choose(adapters []AdapterInfo, want string) (index int, reason string, err error) {
	if len(adapters) == 0 {
		return 0, "", ErrNoAdapter
	}
	if i, err := strconv.Atoi(want); err == nil {
		if i < 0 || i >= len(adapters) {
			return 0, "", fmt.Errorf("%w with number %d; available adapters: %s", ErrNoAdapter, i,
				list(adapters))
		}
		return i, fmt.Sprintf("you requested adapter %d", i), nil
	}
	best, matches := -1, 0
	for i, a := range adapters {
		if !strings.Contains(strings.ToLower(a.Name), strings.ToLower(want)) {
			continue
		}
		matches++
		if best < 0 || a.Type < adapters[best].Type {
			best = i
		}
	}
	switch {
	case best < 0:
		return 0, "", fmt.Errorf("%w with %q in its name; available adapters: %s", ErrNoAdapter, want,
			list(adapters))
	case want != "" && matches > 1:
		return best,
			fmt.Sprintf("the first %s adapter among the %d whose names contain %q",
				adapters[best].Type, matches, want), nil
	case want != "":
		return best, fmt.Sprintf("its name contains %q", want), nil
	case matches == 1:
		return best, "the only adapter", nil
	}
	return best, fmt.Sprintf("the first %s adapter among %d adapters", adapters[best].Type, matches), nil
}

// list returns the adapters with their numbers, for an error message.
func list(adapters []AdapterInfo) string {
	names := make([]string, len(adapters))
	for i, a := range adapters {
		names[i] = fmt.Sprintf("%d %s (%s, %s)", i, a.Name, a.Backend, a.Type)
	}
	return strings.Join(names, "; ")
}
