package model

import (
	"strings"
	"testing"

	"gpuscope/trace/table"
)

// The log says how much memory a model takes in the units of every table.
func TestLogAndTablesShareMemoryUnits(t *testing.T) {
	g := newRig(t, Options{}).s.runner.Net.Graph
	var total int64
	for _, n := range g.AllocatedBytes() {
		total += n
	}
	if line := memoryLine(g); !strings.HasPrefix(line, table.Memory(total)+" (constant ") {
		t.Errorf("%q, want %s in all", line, table.Memory(total))
	}
}
