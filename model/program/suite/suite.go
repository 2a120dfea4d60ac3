// Package suite runs the test cases in a folder. A case is a program with inputs and expected outputs.
// manifest.json lists the cases; docs/guide/verify.md describes its format.
//
//	s, err := suite.Read(dir)
//	for result := range s.Run(ctx, dev, suite.Options{}) {
//		fmt.Println(result.Case, result.Passed)
//	}
package suite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/x448/float16"

	"gpuscope/engine/gpu"
	"gpuscope/internal/npy"
	"gpuscope/internal/printable"
	"gpuscope/internal/readjson"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/program"
)

// Manifest is the file in a suite's folder that lists the cases.
const Manifest = "manifest.json"

// Suite is a folder with test cases.
type Suite struct {
	Dir   string
	Cases []Case
}

// Case is a program and its runs.
type Case struct {
	Name     string   `json:"name"`
	Op       string   `json:"op"`   // operator that the case tests; may be empty
	Tier     string   `json:"tier"` // group of cases; may be empty
	PTE      string   `json:"pte"`
	Method   string   `json:"method"` // forward if empty
	Portable []string `json:"portable_ops"`
	Runs     []Run    `json:"runs"`
}

// Run is one execution of a program.
type Run struct {
	Inputs  []string `json:"inputs"` // .npy files in the order of the method's inputs
	Outputs []Output `json:"outputs"`
}

// Output describes an expected output. File contains the expected elements. A float element passes if |got -
// want| <= Atol + Rtol * |want|. Integers and bools must be equal.
type Output struct {
	Index int     `json:"index"` // index among the outputs of the method
	File  string  `json:"file"`
	Atol  float64 `json:"atol"`
	Rtol  float64 `json:"rtol"`
}

// ErrManifest is wrapped by the error that Read returns if the manifest is invalid.
var ErrManifest = errors.New("wrong manifest")

// Read reads the manifest of a folder.
func Read(dir string) (*Suite, error) {
	path := filepath.Join(dir, Manifest)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("a suite is a folder that contains a file %s: %w", Manifest, err)
	}
	s := &Suite{Dir: dir}
	var manifest struct {
		Cases []Case `json:"cases"`
	}
	if err := readjson.Unmarshal(data, &manifest); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrManifest, err)
	}
	s.Cases = manifest.Cases
	if len(s.Cases) == 0 {
		return nil, fmt.Errorf("%s: %w: the list of cases is empty", path, ErrManifest)
	}
	for i := range s.Cases {
		if err := s.Cases[i].check(); err != nil {
			return nil, fmt.Errorf("%s: %w: case %d (%s): %w", path, ErrManifest, i,
				printable.Short(s.Cases[i].Name, 80), err)
		}
	}
	return s, nil
}

func (c *Case) check() error {
	files := []string{c.PTE}
	for _, run := range c.Runs {
		files = append(files, run.Inputs...)
		for _, out := range run.Outputs {
			files = append(files, out.File)
			if !(out.Atol >= 0) || !(out.Rtol >= 0) || out.Index < 0 {
				return fmt.Errorf("output %d has atol %v and rtol %v; all three numbers must be at least 0",
					out.Index, out.Atol,
					out.Rtol)
			}
		}
	}
	for _, name := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("file %q is outside the folder of the suite", printable.Short(name, 80))
		}
	}
	switch {
	case c.Name == "":
		return errors.New("the case has no name")
	case len(c.Runs) == 0:
		return errors.New("the case has no runs")
	}
	return nil
}

// Filter returns the cases whose name, operator or tier contains the text.
func (s *Suite) Filter(text string) []Case {
	return slices.DeleteFunc(slices.Clone(s.Cases), func(c Case) bool {
		return !strings.Contains(c.Name, text) && !strings.Contains(c.Op, text) &&
			!strings.Contains(c.Tier, text)
	})
}

// Result is the result of a case.
type Result struct {
	Case   string `json:"case"`
	Op     string `json:"op,omitempty"`
	Tier   string `json:"tier,omitempty"`
	Passed bool   `json:"passed"`
	// Runs is the number of completed runs. Runs in order and runs in reverse order both count.
	Runs int `json:"runs"`
	// Worst is the output element with the largest error relative to its tolerance; nil if nothing was
	// compared.
	Worst *Worst `json:"worst,omitempty"`
	// Error states why the case could not be run, or which output has a wrong type or shape.
	Error string `json:"error,omitempty"`

	Err error `json:"-"`
}

// Worst describes the element of an output with the largest error relative to its tolerance.
type Worst struct {
	Run     int `json:"run"`     // index of the run in the case
	Output  int `json:"output"`  // index among the outputs of the method
	Element int `json:"element"` // index in row-major order
	// Got is the element and Want its expected value. In JSON, they are strings if they are not finite.
	Got  Number `json:"got"`
	Want Number `json:"want"`
	// AbsError is |got - want|. OfTolerance is AbsError divided by the tolerance. The element passes if
	// OfTolerance is at most 1.
	AbsError    Number `json:"abs_error"`
	OfTolerance Number `json:"of_tolerance"`
}

// Number is a float that can be encoded as JSON even if it is not finite: NaN and infinities become strings.
type Number float64

// MarshalJSON encodes the number.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Appendf(nil, "%q", fmt.Sprint(v)), nil
	}
	return fmt.Appendf(nil, "%v", float64(n)), nil
}

// Run runs cases on a device, one after the other. The program of a case is loaded once. Its runs are
// executed in order. If a case has several runs, they are then executed again in reverse order.
func (s *Suite) Run(ctx context.Context, dev gpu.Device, cases []Case, o program.Options) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		for i := range cases {
			if ctx.Err() != nil || !yield(s.run(ctx, dev, &cases[i], o)) {
				return
			}
		}
	}
}

func (s *Suite) run(ctx context.Context, dev gpu.Device, c *Case, o program.Options) Result {
	r := Result{Case: c.Name, Op: c.Op, Tier: c.Tier}
	r.Err = s.runCase(ctx, dev, c, o, &r)
	if r.Err != nil {
		r.Error = r.Err.Error()
	}
	r.Passed = r.Err == nil && (r.Worst == nil || r.Worst.OfTolerance <= 1)
	return r
}

func (s *Suite) runCase(ctx context.Context, dev gpu.Device, c *Case, o program.Options, r *Result) error {
	f, err := pte.Open(filepath.Join(s.Dir, c.PTE))
	if err != nil {
		return err
	}
	defer f.Close()
	name := c.Method
	if name == "" {
		name = "forward"
	}
	m, err := program.Build(f, name, dev.Info().Limits, o)
	if err != nil {
		return err
	}
	p, err := program.Load(dev, m)
	if err != nil {
		return err
	}
	defer p.Release()
	order := make([]int, len(c.Runs))
	for i := range order {
		order[i] = i
	}
	if back := slices.Clone(order); len(order) > 1 {
		slices.Reverse(back)
		order = append(order, back...)
	}
	for _, i := range order {
		if err := s.runOnce(ctx, p, c, i, r); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		r.Runs++
	}
	return nil
}

func (s *Suite) runOnce(ctx context.Context, p *program.Program, c *Case, i int, r *Result) error {
	var inputs []*npy.Array
	for _, name := range c.Runs[i].Inputs {
		a, err := npy.Read(filepath.Join(s.Dir, name))
		if err != nil {
			return err
		}
		inputs = append(inputs, a)
	}
	outputs, err := p.Run(ctx, inputs)
	if err != nil {
		return err
	}
	for _, want := range c.Runs[i].Outputs {
		a, err := npy.Read(filepath.Join(s.Dir, want.File))
		if err != nil {
			return err
		}
		if want.Index >= len(outputs) {
			return fmt.Errorf("output %d does not exist: the method has %d outputs", want.Index, len(outputs))
		}
		worst, err := Compare(outputs[want.Index], a, &want)
		if err != nil {
			return fmt.Errorf("output %d: %w", want.Index, err)
		}
		worst.Run, worst.Output = i, want.Index
		if r.Worst == nil || !(worst.OfTolerance <= r.Worst.OfTolerance) {
			r.Worst = &worst
		}
	}
	return nil
}

// ErrShape is wrapped by the error for an output whose type or shape is not as expected.
var ErrShape = errors.New("unexpected type or shape")

// Compare returns the element of an output with the largest error relative to its tolerance.
func Compare(got, want *npy.Array, o *Output) (worst Worst, err error) {
	if got.Type != want.Type || !slices.Equal(got.Dims, want.Dims) {
		return worst, fmt.Errorf("%w: %s %v, want %s %v", ErrShape, got.Type, got.Dims, want.Type, want.Dims)
	}
	read := numbers[got.Type]
	size := got.Type.Size()
	whole := !strings.HasPrefix(string(got.Type), "f")
	for i := range len(got.Data) / size {
		g, w := read(got.Data[i*size:]), read(want.Data[i*size:])
		off, limit := math.Abs(g-w), o.Atol+o.Rtol*math.Abs(w)
		if whole {
			limit = 0
		}
		ratio := off / limit
		switch {
		case g == w || math.IsNaN(g) && math.IsNaN(w):
			off, ratio = 0, 0
		case math.IsNaN(ratio):
			ratio = math.Inf(1)
		}
		if i == 0 || ratio > float64(worst.OfTolerance) {
			worst = Worst{
				Element: i, Got: Number(g), Want: Number(w), AbsError: Number(off),
				OfTolerance: Number(ratio),
			}
		}
	}
	return worst, nil
}

// numbers has, for each element type, a function that reads an element from the start of data.
var numbers = map[npy.Type]func(data []byte) float64{
	npy.Bool:   func(data []byte) float64 { return float64(data[0]) },
	npy.Int8:   func(data []byte) float64 { return float64(int8(data[0])) },
	npy.Uint8:  func(data []byte) float64 { return float64(data[0]) },
	npy.Int32:  func(data []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(data))) },
	npy.Uint32: func(data []byte) float64 { return float64(binary.LittleEndian.Uint32(data)) },
	npy.Int64:  func(data []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(data))) },
	npy.Float16: func(data []byte) float64 {
		return float64(float16.Frombits(binary.LittleEndian.Uint16(data)).Float32())
	},
	npy.Float32: func(data []byte) float64 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
	},
	npy.Float64: func(data []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(data)) },
}
