package stepping

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
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

// scanOf returns a scan of elements that a function computes.
func scanOf(ctx context.Context, count int, element func(i int) float64, tell func(done, total int)) *scan {
	read := func(first, n int) ([]float64, error) {
		list := make([]float64, n)
		for i := range list {
			list[i] = element(first + i)
		}
		return list, nil
	}
	return &scan{
		numbers: numbers{"f32", []int{count}, count, read}, ctx: ctx, passes: 3,
		tell: func(_ string, done, total int) error {
			if tell != nil {
				tell(done, total)
			}
			return nil
		},
	}
}

func TestScansReportProgressAndCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const count = 5*scanPiece + 3
	parity := func(i int) float64 { return float64(i % 2) }
	var told []int
	sc := scanOf(ctx, count, parity, func(done, total int) {
		told = append(told, done)
		if total != 3*count {
			t.Errorf("%d of %d", done, total)
		}
	})
	s, err := sc.statistics()
	if err != nil || s.Max != 1 || math.Abs(s.Mean-0.5) > 1e-6 {
		t.Errorf("%+v, %v", s, err)
	}
	m, err := sc.heatMap(session.MapAt{Width: 2, Rows: count, Columns: 1})
	if err != nil || !slices.Equal(m.Cells, []trace.Number{0, 1}) {
		t.Errorf("%+v, %v", m, err)
	}
	if len(told) != 18 || !slices.IsSorted(told) {
		t.Errorf("progress %v", told)
	}
	sc = scanOf(ctx, count, parity, func(done, _ int) {
		if done > 2*scanPiece {
			cancel()
		}
	})
	if _, err = sc.statistics(); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Each cell of a heat map is compared with the elements of its block.
func TestHeatMapHasLargestElementOfEachBlock(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		count := 1 + random.IntN(900)
		list := make([]float64, count)
		for i := range list {
			switch random.IntN(200) {
			case 0:
				list[i] = math.NaN()
			case 1:
				list[i] = math.Inf(-1)
			default:
				list[i] = random.NormFloat64()
			}
		}
		at := session.MapAt{Width: 1 + random.IntN(60), Rows: 1 + random.IntN(9), Columns: 1 + random.IntN(9)}
		if random.IntN(2) == 0 {
			at.Elements = 1 + random.IntN(count)
		}
		sc := scanOf(context.Background(), count, func(i int) float64 { return list[i] }, nil)
		got, err := sc.heatMap(at)
		if err != nil {
			t.Fatal(err)
		}
		want := map[[2]int]float64{}
		if at.Elements > 0 {
			list, count = list[:at.Elements], at.Elements
		}
		for i, v := range list {
			cell := [2]int{i / at.Width / at.Rows, i % at.Width / at.Columns}
			size, was := math.Abs(v), want[cell]
			if math.IsNaN(v) || !math.IsNaN(was) && size > was {
				want[cell] = size
			}
		}
		if len(got.Cells) != got.Rows*got.Columns || got.Rows*at.Rows*at.Width < count {
			t.Fatalf("%d elements, %+v: %d×%d cells", count, at, got.Rows, got.Columns)
		}
		for i, c := range got.Cells {
			w := want[[2]int{i / got.Columns, i % got.Columns}]
			if float64(c) != w && !(math.IsNaN(w) && math.IsNaN(float64(c))) {
				t.Fatalf("%d elements, %+v: cell %d is %v, want %v", count, at, i, c, w)
			}
		}
	}
}

func TestHeatMapOfUnusualSizes(t *testing.T) {
	one := func(int) float64 { return -1 }
	for _, test := range []struct {
		count         int
		at            session.MapAt
		rows, columns int
	}{
		{0, session.MapAt{Width: 5, Rows: 1, Columns: 1}, 0, 1},
		{1, session.MapAt{Width: math.MaxInt, Rows: math.MaxInt, Columns: math.MaxInt}, 1, 1},
		{7, session.MapAt{Width: 3, Rows: math.MaxInt, Columns: 2}, 1, 2},
	} {
		got, err := scanOf(context.Background(), test.count, one, nil).heatMap(test.at)
		if err != nil || got.Rows != test.rows || got.Columns != test.columns ||
			slices.ContainsFunc(got.Cells, func(n trace.Number) bool { return n != 1 }) {
			t.Errorf("%+v: %+v, %v", test, got, err)
		}
	}
	large := scanOf(context.Background(), 1<<20, one, nil)
	_, err := large.heatMap(session.MapAt{Width: 1 << 10, Rows: 1, Columns: 1})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("2^20 cells: %v", err)
	}
}

// tensor returns a value with random elements, some of which are NaN or infinite.
func tensor(random *rand.Rand, dims []int) (n numbers, list []float64) {
	count := 1
	for _, d := range dims {
		count *= d
	}
	list = make([]float64, count)
	for i := range list {
		list[i] = [...]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1)}[random.IntN(5)]
		if random.IntN(10) > 0 {
			list[i] = float64(random.IntN(9)) - 4 + random.Float64()/8
		}
	}
	return numbers{"f32", dims, count, func(first, n int) ([]float64, error) {
		return slices.Clone(list[first:][:n]), nil
	}}, list
}

// A value is compared element by element with a value that has other dims. The expected numbers come from
// the index of each element in each dim.
func TestDifferencesAreThoseOfTheCommonPart(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range 400 {
		a, b := make([]int, random.IntN(5)), []int(nil)
		for i := range a {
			a[i] = 1 + random.IntN(5)
		}
		for _, d := range a {
			if random.IntN(3) == 0 {
				d = 1 + random.IntN(5)
			}
			b = append(b, d)
		}
		left, ofLeft := tensor(random, a)
		right, ofRight := tensor(random, b)
		p := pairOf(left, right)
		var want []float64
		d := session.Difference{}
		var sum, squares, dot, normA, normB float64
		n := 0
		for i, x := range ofLeft {
			at, inside, to, scale := i, true, 0, 1
			for k := len(a) - 1; k >= 0; k-- {
				index := at % a[k]
				at /= a[k]
				inside = inside && index < b[k]
				to += index * scale
				scale *= b[k]
			}
			if !inside {
				continue
			}
			y := ofRight[to]
			diff := x - y
			if x == y {
				diff = 0
			} else {
				d.Differ++
			}
			want = append(want, diff)
			d.Elements++
			if math.IsNaN(diff) || math.IsInf(diff, 0) {
				d.NotFinite++
				continue
			}
			if math.Abs(diff) > d.MaxAbs {
				index := len(want) - 1
				d.MaxAbs, d.MaxAt = math.Abs(diff), &index
			}
			if !math.IsInf(x, 0) {
				n++
				sum += math.Abs(diff)
				squares, dot, normA, normB = squares+diff*diff, dot+x*y, normA+x*x, normB+y*y
			}
		}
		d.MeanAbs = sum / float64(max(1, n))
		if normB > 0 {
			rel := math.Sqrt(squares / normB)
			d.Relative = &rel
			if normA > 0 {
				cos := dot / math.Sqrt(normA*normB)
				d.Cosine = &cos
			}
		}
		first := random.IntN(p.count)
		got, err := p.read(first, p.count-first)
		if diff := cmp.Diff(want[first:], got, cmpopts.EquateNaNs()); err != nil || diff != "" {
			t.Fatalf("%v - %v from %d: %v %s", a, b, first, err, diff)
		}
		sc := &scan{numbers: p.numbers, ctx: context.Background(), passes: 1}
		found, err := sc.compare(&p)
		if diff := cmp.Diff(&d, found, cmpopts.EquateApprox(1e-12, 1e-12)); err != nil || diff != "" {
			t.Fatalf("%v - %v: %v %s", a, b, err, diff)
		}
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
