//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/model/checkpoint/pte/ptetest"
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

func TestBundledTestCasesAreCompared(t *testing.T) {
	f := newProgramFolder(t)
	test := func(v ...float32) ptetest.Table {
		return ptetest.Test(6, []int32{int32(len(v))}, floatArray(v...).Data)
	}
	for name, third := range map[string]float32{"right.bpte": 33, "wrong.bpte": 34} {
		f.write(name, ptetest.Bundle(ptetest.Adder().Bytes(), ptetest.Suite("forward",
			ptetest.Case([]ptetest.Table{test(1), test(2)}, []ptetest.Table{test(3)}),
			ptetest.Case([]ptetest.Table{test(1, 2, 3), test(10, 20, 30)},
				[]ptetest.Table{test(11, 22, third)}))))
		line := "run --profile off --format json " + filepath.Join(f.dir, name)
		status, stdout, stderr := verified(t, line, "", "")
		var got executionResult
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%s: exit %d: %v: %s", name, status, err, stderr)
		}
		if len(got.Executions) != 2 || got.Worst == nil || (status == exitDone) != (third == 33) ||
			(got.Worst.OfTolerance <= 1) != (third == 33) {
			t.Errorf("%s: exit %d: %+v: %s", name, status, got, stderr)
		}
	}
}
