//go:build formats

package perfetto_test

import (
	"bytes"
	"os/exec"
	"regexp"
	"testing"

	"gpuscope/trace/export/exporttest"
	"gpuscope/trace/export/perfetto"
	"gpuscope/trace/tracetest"
)

func TestProtocDecodesTheFile(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 4)
	var b bytes.Buffer
	if err := perfetto.Format.Write(&b, tr); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("protoc", "--decode_raw")
	cmd.Stdin = &b
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	// A GPU event is field 53 of a packet. The queue is field 13 of the event; 1 is that of the dispatches.
	events := regexp.MustCompile(`(?m)^  53 \{$`).FindAll(out, -1)
	queued := regexp.MustCompile(`(?m)^    13: 1$`).FindAll(out, -1)
	if want := exporttest.TotalsOf(tr).Timed; len(queued) != want || len(events) != want+len(tr.Steps) {
		t.Errorf("%d events, %d of them dispatches, want %d", len(events), len(queued), want)
	}
}
