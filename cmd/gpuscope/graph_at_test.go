package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// graph --at plans the dispatches of a step that did not run. At position 638 attention has four splits for
// each of 6 heads. The routes are those for the given number of tokens.
func TestGraphAtALiveShapeShowsItsDispatches(t *testing.T) {
	t.Parallel()
	type row struct {
		Op, Reason, Live string
		Grid             json.RawMessage
	}
	rows := func(at string) map[string]row {
		var table struct{ Rows []row }
		if err := json.Unmarshal([]byte(graphOf(t, "--at "+at+" --format json")), &table); err != nil {
			t.Fatal(err)
		}
		byOp := map[string]row{}
		for _, r := range table.Rows {
			byOp[r.Op] = r
		}
		return byOp
	}
	decode, prompt := rows("1,638"), rows("7,0")
	got := decode["rope+sdpa.decode"]
	if string(got.Grid) != "24" || !strings.HasPrefix(got.Reason, "split_decoding") {
		t.Errorf("attention at 638 has %s workgroups, %s, want 4 for each of 6 heads", got.Grid, got.Reason)
	}
	if _, runs := prompt["rope+sdpa.decode"]; runs {
		t.Error("seven tokens use split decoding")
	}
	// The rotation writes to attention's scratch, which therefore has the live shape too. The last layer
	// computes q only for the last token.
	if got := prompt["rope+sdpa.rope"].Live; got != "1×1×6×64, 1×7×2×64 @0" {
		t.Errorf("the rotation of seven tokens has the live shapes %q", got)
	}
	if got := prompt["rope+sdpa.update_cache"].Live; got != "1×7×2×64, 1×7×2×64 @0" {
		t.Errorf("the cache update of seven tokens has the live shapes %q", got)
	}
	if got := prompt["k"].Reason; !strings.HasPrefix(got, "batch8") {
		t.Errorf("k of seven tokens takes %q, want batch8", got)
	}
}

func TestGraphOfSingleTokensSaysSo(t *testing.T) {
	t.Parallel()
	if text := graphOf(t, "--max-chunk 1"); !strings.Contains(text, "at most 1 token ") {
		t.Errorf("%.200s", text)
	}
}

func TestGraphAtAnImpossibleShapeIsRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--at 7": "want M,POS", "--at 0,3": "want 1 to", "--at 1,9999": "for a context of",
		"--at 1,64": "position 64 with 1 token: want at most 63, for a context of 64",
		"--at 1,-1": "want 0 or more", "--at 1,2 --format dot": "--format dot",
	} {
		var stdout, stderr bytes.Buffer
		status := testProgram(&stdout, &stderr).main(t.Context(),
			strings.Fields("graph --device none --context 64 "+args))
		if status != exitUsage || !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %s", args, status, &stderr)
		}
	}
}
