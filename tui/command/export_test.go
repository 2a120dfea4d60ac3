package command

import (
	"bytes"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

func TestALargeExportStatesItsSize(t *testing.T) {
	t.Parallel()
	small, large := tracetest.Llama(1, 3), tracetest.Llama(15, 400)
	if ExportTo(small, "") == ExportTo(large, "") {
		t.Errorf("both questions are %q", ExportTo(small, ""))
	}
	var file bytes.Buffer
	if err := trace.Write(&file, large); err != nil {
		t.Fatal(err)
	}
	if got, want := large.EstimateJSON(), int64(file.Len()); got < want*7/10 || got > want*12/10 {
		t.Errorf("the estimate is %d bytes, the file has %d", got, want)
	}
}
