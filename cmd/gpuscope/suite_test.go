//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedCases is the folder with ExecuTorch's test cases for dynamic shapes.
func sharedCases(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "pte", "dynamic")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test programs are missing: %v", err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	return dir
}

func TestVerifyRunsTheCasesOfASuite(t *testing.T) {
	dir := sharedCases(t)
	status, stdout, stderr := verified(t, "verify --filter static_ --format json --suite "+dir, "", "")
	var report suiteReport
	if err := json.Unmarshal([]byte(stdout), &report); status != exitDone || err != nil {
		t.Fatalf("exit %d, %v: %s", status, err, stderr)
	}
	if report.Suite != dir || report.Passed != 2 || report.Failed != 0 || len(report.Cases) != 2 ||
		report.Cases[0].Worst == nil || report.Device == "" {
		t.Errorf("report %+v", report)
	}
}

func TestVerifyFailsIfACaseFails(t *testing.T) {
	status, stdout, stderr := verified(t, "verify --filter dyn_sigmoid --suite "+sharedCases(t),
		"1.0 / (1.0 + exp(-v))", "1.0 / (1.0 + exp(-2.0 * v))")
	if status != exitFailed || !strings.Contains(stdout, "dyn_sigmoid") || stderr == "" {
		t.Errorf("exit %d: %s%s", status, stdout, stderr)
	}
}

func TestFlagsThatDoNotFitASuiteAreRefused(t *testing.T) {
	for _, line := range []string{
		"verify --filter a", "verify --suite . -n 2", "verify --suite . --prompt a", "verify --suite . model.gguf",
		"verify --suite . --device none", "verify --suite . --format dot",
	} {
		var out, err bytes.Buffer
		p := testProgram(&out, &err)
		if status := p.main(t.Context(), strings.Fields(line)); status != exitUsage || out.Len() > 0 {
			t.Errorf("%s: exit %d: %s%s", line, status, &out, &err)
		}
	}
}
