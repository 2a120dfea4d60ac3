package trace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report/kernels"
	"gpuscope/trace/tracetest"
)

// A replacement kernel is recorded after the header and joins the graph from then on: in the recording, in
// its file, and in the index. Earlier snapshots do not have it.
func TestReplacementKernelsJoinTheGraph(t *testing.T) {
	whole := tracetest.Llama(1, 3)
	head := *whole
	head.Plans, head.Steps = nil, nil
	own := &whole.Graph.Kernels[0]
	k := trace.Kernel{
		Name: own.Name + "+3fa2", Of: own.Name, WorkgroupSize: own.WorkgroupSize, Source: "// better\n",
		SourceSHA256: "3fa2",
	}
	var file bytes.Buffer
	if err := trace.WriteStream(&file, &head); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf(`{"kernel":{"name":%q,"workgroup_size":[64,1,1],"source_sha256":"3fa2",`+
		`"source":"// better\n","of":%q}}`+"\n", k.Name, own.Name)
	file.WriteString(line + line)
	read, err := trace.Read(&file)
	if err != nil {
		t.Fatal(err)
	}

	r := trace.NewRecorder(&head, 0)
	before := r.Snapshot()
	x := analyze.NewIndex(before)
	for range 2 { // another run of the graph records it again
		if err := r.Write(trace.Record{Kernel: &k}); err != nil {
			t.Fatal(err)
		}
	}
	recorded := r.Snapshot()
	n := len(before.Graph.Kernels)
	now := recorded.Graph.Kernels
	if d := cmp.Diff(now, read.Graph.Kernels); d != "" || len(now) != n+1 {
		t.Errorf("%d kernels, then %d\n%s", n, len(now), d)
	}
	kernels := kernels.Kernels(x.Next(recorded))
	slots := kernels.Column("slots")
	if a, b := kernels.Cell(0, slots), kernels.Cell(n, slots); a.Number != b.Number || b.Number == 0 {
		t.Errorf("the kernel has %v slots, its replacement %v", a.Number, b.Number)
	}
	if got := x.Next(recorded).Kernel(k.Name); got == nil || got.Of != own.Name || x.Kernel(k.Name) != nil {
		t.Errorf("the index has %+v", got)
	}
	other := k
	other.SourceSHA256 = "3fa2d1"
	err = r.Write(trace.Record{Kernel: &other})
	if err == nil || !strings.Contains(err.Error(), "a different source") {
		t.Errorf("another source with the same name: %v", err)
	}
}
