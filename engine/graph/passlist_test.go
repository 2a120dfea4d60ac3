package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// passOrder returns an error if a pass of the table comes before a pass that it needs.
func passOrder(table []pass) error {
	var before []string
	for _, p := range table {
		for _, n := range p.needs {
			if !slices.Contains(before, n) {
				return fmt.Errorf("pass %s needs %s before it, the earlier passes are %s", p.name, n,
					strings.Join(before, ", "))
			}
		}
		before = append(before, p.name)
	}
	return nil
}

func TestPassesComeAfterWhatTheyNeed(t *testing.T) {
	if err := passOrder(passes); err != nil {
		t.Error(err)
	}
	if err := passOrder([]pass{{name: "a"}, {name: "b", needs: []string{"c"}}, {name: "c"}}); err == nil {
		t.Error("a pass before one that it needs was accepted")
	}
}
