//go:build !race

package model

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/model/capture"
	"gpuscope/session"
	"gpuscope/trace"
)

// The replay of a captured dispatch of the embedded model computes what the dispatch computed, for each
// kernel of a prompt and of a decode step.
func TestReplayComputesWhatWasCaptured(t *testing.T) {
	dev := gputest.Open(t)
	always := []string{"linear_q4gsw_gemv", "sdpa_decode", "rms_norm"} // the kernels that -short tests
	seen := map[string]bool{}
	for _, fuse := range []string{"on", "off"} {
		r := openOn(t, dev, Options{Fuse: fuse})
		s := r.s.(*live)
		for i, c := range []session.Command{promptOf(9), {Kind: session.Next}} {
			r.do(c)
			for _, id := range slices.Clone(s.Exec.Live().Active()) {
				launch, k := s.Exec.Live().Launch(id)
				name := s.Graph.KernelNames[k]
				if launch == nil || seen[name] || testing.Short() && !slices.Contains(always, name) {
					continue
				}
				seen[name] = true
				dir := filepath.Join(t.TempDir(), "capture")
				r.do(session.Command{Kind: session.Capture, Capture: &session.CaptureTo{
					Dispatch: id, Dir: dir, MaxBytes: 64 << 20, Phase: trace.Prefill,
				}})
				got, err := capture.Read(dir, 64<<20)
				if err != nil {
					t.Fatal(err)
				}
				if got.Kernel.Name != name || got.Dispatch.ID != id || got.Step.Index != i ||
					got.Step.Position != 9*i || got.Device.Name != dev.Info().Name {
					t.Errorf("%s: %+v", name, got)
				}
				result, err := got.Replay(context.Background(), dev, capture.ReplayOptions{})
				if err != nil || result.Differ() != 0 || len(result.Outputs) == 0 {
					t.Errorf("%s (%s): %+v, %v", name, got.Dispatch.Name, result, err)
				}
			}
		}
		r.end()
	}
	for _, want := range always {
		if !seen[want] {
			t.Errorf("no step runs %s: %v", want, seen)
		}
	}
}
