package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// upTo returns the samples 1 ms, 2 ms, ... in falling order.
func upTo(n int) (ns []int64) {
	for i := n; i > 0; i-- {
		ns = append(ns, int64(i)*1e6)
	}
	return ns
}

func TestPercentilesNeedEnoughSamples(t *testing.T) {
	for _, c := range []struct {
		n    int
		want Latency
	}{
		{1, Latency{Of: InterToken, N: 1}},
		{2, Latency{Of: InterToken, N: 2, P50NS: 1.5e6}},
		{9, Latency{Of: InterToken, N: 9, P50NS: 5e6}},
		{10, Latency{Of: InterToken, N: 10, P50NS: 5.5e6, P90NS: 9.1e6}},
		{99, Latency{Of: InterToken, N: 99, P50NS: 50e6, P90NS: 89.2e6}},
		{100, Latency{Of: InterToken, N: 100, P50NS: 50.5e6, P90NS: 90.1e6, P99NS: 99.01e6}},
		{101, Latency{Of: InterToken, N: 101, P50NS: 51e6, P90NS: 91e6, P99NS: 100e6}},
	} {
		got := LatencyOf(InterToken, upTo(c.n))
		if d := cmp.Diff(&c.want, got); d != "" {
			t.Errorf("%d samples:\n%s", c.n, d)
		}
		if err := got.check(); err != nil {
			t.Errorf("%d samples: %v", c.n, err)
		}
	}
	if got := LatencyOf(InterToken, nil); got != nil {
		t.Errorf("no samples: %+v", got)
	}
}

func TestLatenciesInAFileAreChecked(t *testing.T) {
	good := Latency{Of: FirstToken, N: 100, P50NS: 5, P90NS: 6, P99NS: 6}
	for name, change := range map[string]func(*Latency){
		"kind":          func(l *Latency) { l.Of = "token" },
		"no samples":    func(l *Latency) { l.N = 0 },
		"falling":       func(l *Latency) { l.P90NS = 4 },
		"negative":      func(l *Latency) { l.P50NS = -5 },
		"p99 left out":  func(l *Latency) { l.P99NS = 0 },
		"p99 of 99":     func(l *Latency) { l.N = 99 },
		"p50 of one":    func(l *Latency) { *l = Latency{Of: FirstToken, N: 1, P50NS: 5} },
		"nothing wrong": func(*Latency) {},
	} {
		r := example()
		l := good
		change(&l)
		r.Tests[0].Latency = &l
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(r); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&b); (err == nil) != (name == "nothing wrong") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
