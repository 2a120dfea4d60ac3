package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// passOrder says what is wrong with the order of a table of passes.
func passOrder(table []pass) error {
	var before []string
	for _, p := range table {
		for _, n := range p.needs {
			if !slices.Contains(before, n) {
				return fmt.Errorf("pass %s needs %s before it, there are %s", p.name, n,
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
		t.Error("a pass before what it needs was taken")
	}
}
