package model

import (
	"strings"
	"testing"

	"gpuscope/model/stepping"

	"gpuscope/trace/table"
)

// The log states the memory of a model in the same units as the tables.
func TestLogAndTablesShareMemoryUnits(t *testing.T) {
	g := newRig(t, Options{}).s.runner.Net.Graph
	var total int64
	for _, n := range g.AllocatedBytes() {
		total += n
	}
	if line := stepping.MemoryLine(g); !strings.HasPrefix(line, table.Memory(total)+" (constant ") {
		t.Errorf("%q, want %s in all", line, table.Memory(total))
	}
}
