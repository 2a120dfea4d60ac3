package stepping

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/engine"
	"gpuscope/session"
	"gpuscope/trace"
)

func TestEveryFieldOfACommandIsChecked(t *testing.T) {
	want := reflect.TypeFor[session.Command]().NumField() - 1
	if len(Fields) != want {
		t.Errorf("%d fields of a command are checked, but it has %d besides its kind", len(Fields), want)
	}
}

// The cache ignores a file that is damaged, truncated, or from another version or device.
func TestIncompleteCacheOfCeilingsIsNotRead(t *testing.T) {
	cache := CeilingCache(filepath.Join(t.TempDir(), "deep", "er"))
	d := trace.Device{Name: "x", Backend: "vulkan", Driver: "1"}
	found := &trace.Ceilings{
		CopyBytesPerS: []trace.CopyRate{{Bytes: 1 << 20, PerS: 1e12}}, FlopsPerS: 1e13,
		DispatchNS: trace.Measured(1700), TimedPassNS: trace.Measured(4800), FillWorkgroups: 132, N: 5,
	}
	if err := cache.store(&d, found); err != nil {
		t.Fatal(err)
	}
	_, path, _ := cache.of(&d)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	same := cmpopts.EquateComparable(trace.Time{})
	if diff := cmp.Diff(found, cache.load(&d), same); diff != "" {
		t.Fatal(diff)
	}
	if list, _ := os.ReadDir(string(cache)); len(list) != 1 {
		t.Errorf("%d files in the folder", len(list))
	}
	replaced := func(old, new string) []byte { return bytes.Replace(whole, []byte(old), []byte(new), 1) }
	for name, data := range map[string][]byte{
		"cut short": whole[:len(whole)/2], "empty": nil, "no JSON": []byte("hello"), "null": []byte("null"),
		"another version": replaced(`"version": "`, `"version": "0`),
		"another device":  replaced(`"device": "x"`, `"device": "y"`),
		"nothing found":   []byte(`{"ceilings": {}}`),
		"a rate below 0":  replaced(`"per_s": `, `"per_s": -`),
		"a rate of 0":     replaced("1000000000000", "0"),
		"large":           append(slices.Clone(whole), bytes.Repeat([]byte(" "), maxCeilingsFile)...),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if c := cache.load(&d); c != nil {
			t.Errorf("%s: loaded %+v", name, c)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if c := cache.load(&d); c != nil {
		t.Errorf("a folder in place of the file: loaded %+v", c)
	}
}

func TestStatisticsReportProgressAndCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var told []int
	n := numbers{"f32", nil, 5*statisticsPiece + 3, func(first, n int) ([]float64, error) {
		list := make([]float64, n)
		for i := range list {
			list[i] = float64((first + i) % 2)
		}
		return list, nil
	}}
	s, err := statistics(ctx, n, func(done, total int) error {
		told = append(told, done)
		if total != 2*n.count {
			t.Errorf("%d of %d", done, total)
		}
		return nil
	})
	if err != nil || len(told) != 12 || !slices.IsSorted(told) || s.Max != 1 || math.Abs(s.Mean-0.5) > 1e-6 {
		t.Errorf("%+v, %v, progress %v", s, err, told)
	}
	_, err = statistics(ctx, n, func(done, _ int) error {
		if done > 2*statisticsPiece {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// On a software device, a few runs that other processes delay must not move the gain out of its quartiles.
func TestATrialOnSoftwareHasMedians(t *testing.T) {
	turns := engine.Turns{Own: []int64{100, 100}, New: []int64{99}}
	for range 11 {
		turns.New, turns.Own = append(turns.New, 99), append(turns.Own, 100)
	}
	turns.New[3], turns.New[6] = 9000, 9000
	if got := inTurns(&turns, true).Gain; got.NS != 1 || got.NS < got.Q1NS || got.NS > got.Q3NS {
		t.Errorf("on software %+v", got)
	}
	for i := range turns.New { // two groups; a median sees only the larger
		turns.New[i] = 99 - 9*int64(i%2*(i%3))
	}
	if got := inTurns(&turns, false).Gain; got.NS == 1 || got.NS < got.Q1NS || got.NS > got.Q3NS {
		t.Errorf("on a GPU, where the gain is a mean of all runs: %+v", got)
	}
}

func TestEveryConditionOfARunIsKnown(t *testing.T) {
	for _, k := range session.Breaks {
		if conditions[k.Word] == nil {
			t.Errorf("no condition handles breakpoint %s", k.Word)
		}
	}
	if len(conditions) != len(session.Breaks) {
		t.Errorf("%d conditions, but %d breakpoints are defined", len(conditions), len(session.Breaks))
	}
}
