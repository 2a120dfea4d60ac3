package gpu

import (
	"fmt"
	"strconv"
	"strings"
)

// Choose picks an adapter: the one that want names, by its index or by a part of its name in any case, and
// where want is empty the best kind there is (discrete, integrated, virtual, cpu, unknown). Among equals the
// earlier one wins. The reason is a phrase for people, fit to follow "chosen: ". An error wraps
// ErrNoAdapter and lists what there is.
func Choose(adapters []AdapterInfo, want string) (index int, reason string, err error) {
	if len(adapters) == 0 {
		return 0, "", ErrNoAdapter
	}
	if i, err := strconv.Atoi(want); err == nil {
		if i < 0 || i >= len(adapters) {
			return 0, "", fmt.Errorf("%w with number %d; there are: %s", ErrNoAdapter, i, list(adapters))
		}
		return i, fmt.Sprintf("number %d was asked for", i), nil
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
		return 0, "", fmt.Errorf("%w with %q in its name; there are: %s", ErrNoAdapter, want, list(adapters))
	case want != "" && matches > 1:
		return best,
			fmt.Sprintf("the first %s one of %d with %q in the name", adapters[best].Type, matches, want), nil
	case want != "":
		return best, fmt.Sprintf("%q is in its name", want), nil
	case matches == 1:
		return best, "the only adapter", nil
	}
	return best, fmt.Sprintf("the first %s one of %d", adapters[best].Type, matches), nil
}

// list names the adapters with their numbers, for an error message.
func list(adapters []AdapterInfo) string {
	names := make([]string, len(adapters))
	for i, a := range adapters {
		names[i] = fmt.Sprintf("%d %s (%s, %s)", i, a.Name, a.Backend, a.Type)
	}
	return strings.Join(names, "; ")
}
