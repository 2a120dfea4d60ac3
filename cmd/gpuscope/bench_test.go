//go:build !race

package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/gpu/wgpu"
	"gpuscope/trace/bench"
)

// Runs the benchmark of the embedded model on this machine's GPU and parses the JSON that it prints. The test
// checks that times are present, but not their values, because these depend on the machine.
func TestTheEmbeddedModelIsMeasured(t *testing.T) {
	gputest.Open(t) // skips the test if there is no GPU
	var stdout, stderr bytes.Buffer
	p := testProgram(&stdout, &stderr)
	p.driver = wgpu.New()
	args := strings.Fields("bench --pp 5 --tg 2 --depth 0,3 -r 2 --max-chunk 4 --format json")
	args = append(args, "--device", os.Getenv("GPUSCOPE_DEVICE"))
	if status := p.main(t.Context(), args); status != exitDone {
		t.Fatalf("exit %d: %s", status, &stderr)
	}
	got, err := bench.Read(&stdout)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range got.Tests {
		names = append(names, got.Tests[i].Name+" "+got.Tests[i].Mode)
	}
	want := []string{
		"pp5 stepped", "tg2 stepped", "tg2 pipelined", "pp5 @ d3 stepped", "tg2 @ d3 stepped", "tg2 @ d3 pipelined",
	}
	want = slices.DeleteFunc(want, func(name string) bool { // a step of several submits cannot be pipelined
		name, is := strings.CutSuffix(name, " pipelined")
		return is && strings.Contains(stderr.String(), name+" was not measured pipelined")
	})
	if !slices.Equal(names, want) {
		t.Errorf("tests %q, want %q", names, want)
	}
	if got.Device.Software() != (got.Device.Ceilings == nil) || got.Producer.Version == "" ||
		got.Device.Name == "" {
		t.Errorf("device %+v, producer %+v", got.Device, got.Producer)
	}
}

func TestTheKernelsOfTheEmbeddedModelAreMeasured(t *testing.T) {
	gputest.Open(t) // skips the test if there is no GPU
	var stdout, stderr bytes.Buffer
	p := testProgram(&stdout, &stderr)
	p.driver = wgpu.New()
	args := strings.Fields("bench --kernels --pp 2 -r 1 --max-chunk 2 --format json")
	args = append(args, "--device", os.Getenv("GPUSCOPE_DEVICE"))
	if status := p.main(t.Context(), args); status != exitDone {
		t.Fatalf("exit %d: %s", status, &stderr)
	}
	got, err := bench.Read(&stdout)
	if err != nil {
		t.Fatal(err)
	}
	routes := map[string]int{}
	for _, k := range got.Kernels {
		routes[k.Route]++
	}
	if routes["gemv"] == 0 || routes["batch4"] == 0 || len(got.Crossovers) == 0 {
		t.Errorf("routes %v, crossovers %+v", routes, got.Crossovers)
	}
}

// Flags that would have no effect are rejected, because with --kernels no steps run, and with --tg 0 no
// decode steps run.
func TestFlagsOfStepsThatNeverRunAreRefused(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{
		"--kernels --tg 4", "--kernels --mode stepped", "--kernels --tracing", "--kernels --timing step",
		"--kernels --seed 2", "--kernels --static", "--kernels --check", "--kernels --propagation fixpoint",
		"--kernels --ignore-eos", "--tg 0 --mode pipelined", "--tg 0,0 --tracing",
	} {
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr)
		status := p.main(t.Context(), strings.Fields("bench "+flags))
		name, _, _ := strings.Cut(flags[strings.LastIndex(flags, "--"):], " ")
		if want := name + " "; status != exitUsage ||
			!strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit %d, %s", flags, status, &stderr)
		}
	}
}

func TestBenchmarkAsMarkdownHasTableAndNotes(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	p := testProgram(&stdout, &stderr)
	args := strings.Fields("bench --pp 4 --tg 2 --depth 0,8 -r 1")
	if status := p.main(t.Context(), args); status != exitDone {
		t.Fatalf("exit %d: %s", status, &stderr)
	}
	for _, want := range []string{
		"device Big GPU", "driver acme 1.2", "| pp4 | stepped |", "| tg2 @ d8 | stepped |",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, &stdout)
		}
	}
	if !regexp.MustCompile(` [\d.]+ \w?B/s .* [\d.]+ \w?FLOP/s`).Match(stdout.Bytes()) {
		t.Errorf("no ceilings in\n%s", &stdout)
	}
}
