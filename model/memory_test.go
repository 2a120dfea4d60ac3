//go:build !race

package model

import (
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/gpu/rules"
	"gpuscope/session"
)

// residentBytes returns the resident memory of this process, without garbage that Go has not collected yet.
func residentBytes(t *testing.T) float64 {
	t.Helper()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("this system does not report resident memory: %v", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	if err != nil {
		t.Fatal(err)
	}
	return float64(pages * os.Getpagesize())
}

// Every encoder, pass, command buffer and readback must be released, or memory grows with each step. With
// GPUSCOPE_LARGE the test runs 2,000 steps and allows a growth of 2 %. By default it runs fewer steps, in
// which the memory pools of a software device do not settle, and allows 5 %.
func TestStepsOnTheGPUTakeConstantMemory(t *testing.T) {
	// steps per round, rounds before each of the two measurements, allowed growth
	steps, early, late, bound := 30, 3, 8, 1.05
	if os.Getenv("GPUSCOPE_LARGE") != "" {
		steps, early, late, bound = 100, 5, 20, 1.02
	}
	dev := gputest.Open(t)
	s, err := Open(context.Background(),
		Options{Driver: lent{dev}, Timing: engine.TimingDispatch, IgnoreEOS: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range s.Events() { // discard the events, because memory that a front end keeps does not count
		}
	}()
	handles := func() rules.Live { return dev.(interface{ Live() rules.Live }).Live() }
	held := handles()
	var before float64
	for round := range late {
		if round == early {
			before = residentBytes(t)
		}
		for _, c := range []session.Command{
			{Kind: session.Reset},
			{Kind: session.Prompt, Tokens: promptIDs(7, 3)},
			{Kind: session.Run, N: steps - 1},
		} {
			if _, err := s.Do(context.Background(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	after := residentBytes(t)
	if now := handles(); now != held {
		t.Errorf("the device's objects were %+v before the first step, %+v after the last", held, now)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-done
	t.Logf("resident after %d steps %.1f MB, after %d steps %.1f MB", early*steps, before/1e6, late*steps,
		after/1e6)
	if after > before*bound {
		t.Errorf("resident memory grew from %.1f to %.1f MB between steps %d and %d, at most a factor of %v",
			before/1e6, after/1e6, early*steps, late*steps, bound)
	}
}
