package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// executorch is the table that the WebGPU runtime of ExecuTorch prints after each run, with a row for each
// dispatch: its index, its kernel, its grid and its GPU time in µs. The benchmark that calls it prints the
// time of whole steps. An example for prefill is "pp512 404.1 tok/s", and an example for decode is "tg128
// 130.0 tok/s mean, median step 7.7 ms". Other lines of the output are skipped. The runtime runs the
// operators of a program in order and does not fuse them. So a row belongs to the next operator that has
// dispatches.
var executorch = format{
	name: "executorch", doc: "the table of dispatches that ExecuTorch's WebGPU runtime prints",
	sniff: func(start []byte) bool { return bytes.Contains(start, []byte(tableMark)) },
	read:  readExecuTorch,
}

const (
	tableMark = "WebGPUQueryPool" // in the line before a table

	maxKernel = 200     // maximum length of a kernel's name in bytes
	maxGroups = 1 << 20 // maximum number of workgroups in one dim of a grid
	maxMicros = 1e12    // maximum time of a dispatch in µs, more than a week

	unnamed = "dispatch" // name of a kernel that has no name of its own in the table
)

// row is a line of the table.
type row struct {
	line   int
	kernel string
	grid   [3]int
	time   trace.Time
}

func readExecuTorch(in io.Reader, t *trace.Trace) error {
	t.Engine, t.Device.Backend = "ExecuTorch", "ExecuTorch WebGPU"
	r := newExecutorchReader(t)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n, inside := 1, false; lines.Scan(); n++ {
		text := lines.Text()
		fields := strings.Fields(text)
		switch {
		case strings.Contains(text, tableMark):
			inside = true
			if err := r.step(n); err != nil {
				return err
			}
		case r.stated(text):
			inside = false
			if err := r.step(n); err != nil {
				return err
			}
		case !inside || len(fields) == 0:
		case !isNumber(fields[0]):
			inside = false
			if err := r.step(n); err != nil {
				return err
			}
		default:
			if fields[0] == "0" { // the table may begin without a line before it
				if err := r.step(n); err != nil {
					return err
				}
			}
			if err := r.row(n, fields); err != nil {
				return &LineError{n, err}
			}
			if len(r.rows) > r.most {
				return r.step(n + 1) // an error that names the first row without an operator
			}
		}
		r.lines = n
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &LineError{
			r.lines + 1, fmt.Errorf("%w: the line has more than %d bytes", ErrTooLarge, maxLine),
		}
	case err != nil:
		return err
	}
	if err := r.step(r.lines + 1); err != nil {
		return err
	}
	if len(t.Steps) == 0 {
		return fmt.Errorf("%w: the tables have no rows", ErrFormat)
	}
	r.finish()
	return nil
}

var (
	prefillRate = regexp.MustCompile(`^pp([0-9]{1,7}) ([0-9.]{1,12}) tok/s`)
	decodeStep  = regexp.MustCompile(`^tg[0-9]{1,7} .*\bmedian step ([0-9.]{1,12}) ms`)
)

// stated reports whether a line states the time of a whole step, and adds this time to the trace. The last
// line for each phase counts.
func (r *executorchReader) stated(text string) bool {
	s, ms := trace.Stated{}, 0.0
	if m := prefillRate.FindStringSubmatch(text); m != nil {
		tokens, _ := strconv.Atoi(m[1]) // cannot fail: at most 7 digits
		rate, _ := strconv.ParseFloat(m[2], 64)
		s.Phase, s.Tokens, ms = trace.Prefill, tokens, 1e3*float64(tokens)/rate
	} else if m := decodeStep.FindStringSubmatch(text); m != nil {
		s.Phase, s.Tokens = trace.Decode, 1
		ms, _ = strconv.ParseFloat(m[1], 64)
	}
	if !(ms > 0 && ms <= maxMicros/1e3) {
		return false
	}
	s.WallNS = trace.Measured(int64(math.Round(ms * 1e6)))
	r.t.Stated = slices.DeleteFunc(r.t.Stated, func(was trace.Stated) bool { return was.Phase == s.Phase })
	r.t.Stated = append(r.t.Stated, s)
	return true
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// executorchReader collects the rows of one step.
type executorchReader struct {
	*recorder
	routes  [][]route // by operator
	most    int       // largest number of rows that a step can have
	rows    []row
	lines   int               // lines read
	kernels map[string]string // names of kernels, so that each is stored once
}

func newExecutorchReader(t *trace.Trace) *executorchReader {
	r := &executorchReader{recorder: newRecorder(t), kernels: map[string]string{}}
	for i := range t.Graph.Ops {
		routes, longest := routesOf(t.Graph.Ops[i].Kind), 0
		for _, route := range routes {
			longest = max(longest, len(route))
		}
		r.routes, r.most = append(r.routes, routes), r.most+longest
	}
	return r
}

// row reads a row of the table.
func (r *executorchReader) row(line int, fields []string) error {
	if len(fields) != 4 {
		return fmt.Errorf("the row has %d columns, want 4: index, kernel, grid and time in µs", len(fields))
	}
	index, err := strconv.Atoi(fields[0])
	if err != nil || index != len(r.rows) {
		return fmt.Errorf("the row has index %s, want %d", printable.Short(fields[0], 20), len(r.rows))
	}
	if len(fields[1]) > maxKernel {
		return fmt.Errorf("the name of the kernel has %d bytes, but the maximum is %d", len(fields[1]),
			maxKernel)
	}
	at := row{line: line, kernel: r.intern(fields[1])}
	if at.grid, err = gridOf(fields[2]); err != nil {
		return err
	}
	if at.time, err = microseconds(fields[3]); err != nil {
		return err
	}
	r.rows = append(r.rows, at)
	return nil
}

func (r *executorchReader) intern(name string) string {
	if _, ok := r.kernels[name]; !ok {
		r.kernels[name] = name
	}
	return r.kernels[name]
}

func gridOf(text string) (grid [3]int, err error) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(text, "("), ")"), ",")
	if len(parts) != len(grid) {
		return grid, fmt.Errorf("grid %s: want three counts, such as (512,1,1)", printable.Short(text, 40))
	}
	for i, p := range parts {
		if grid[i], err = strconv.Atoi(p); err != nil || grid[i] < 1 || grid[i] > maxGroups {
			return grid, fmt.Errorf("grid %s: want counts between 1 and %d", printable.Short(text, 40),
				maxGroups)
		}
	}
	return grid, nil
}

// microseconds reads a time in µs.
func microseconds(text string) (trace.Time, error) {
	us, err := strconv.ParseFloat(text, 64)
	if err != nil || !(us >= 0 && us <= maxMicros) {
		return trace.Time{}, fmt.Errorf("time %s: want a number of µs between 0 and %g",
			printable.Short(text, 40), maxMicros)
	}
	return trace.Measured(int64(math.Round(us * 1e3))), nil
}

// step adds the collected rows as a step. `line` is the line after the last row.
func (r *executorchReader) step(line int) error {
	if len(r.rows) == 0 {
		return nil
	}
	launches, err := r.join(line)
	if err != nil {
		return err
	}
	phase := trace.Prefill
	if oneToken(r.rows) {
		phase = trace.Decode
	}
	r.rows = r.rows[:0]
	return r.add(phase, launches)
}

// oneToken reports whether a step read one token. For one token, the runtime has special kernels for
// attention and for matrices. All matrices must use such a kernel, because the matrix of the logits uses one
// in every step.
func oneToken(rows []row) bool {
	matrices, one := 0, 0
	for i := range rows {
		switch k := rows[i].kernel; {
		case strings.HasPrefix(k, "fd_"):
			return true
		case strings.HasPrefix(k, "sdpa_"):
			return false
		case strings.HasPrefix(k, "linear_q4gsw"):
			matrices++
			if strings.Contains(k, "_bicol") {
				one++
			}
		}
	}
	return one > 0 && one == matrices
}

// Mismatch is the error for a profile whose rows do not fit the operators of the model.
type Mismatch struct {
	Line     int    // line of the row in the file; the line after the table if the table ends too early
	Step     int    // index of the step
	Row      int    // index of the row in the step
	Kernel   string // kernel of the row; "" if the table ends too early
	Operator string // name of the operator that comes next; "" if there is none
	Want     string // kernels that this operator can run next; "" if there is none
}

func (e *Mismatch) Error() string {
	const advice = "the profile is of another program, or its runtime fused operators. " +
		"Import it with the program that was profiled"
	is := fmt.Sprintf("line %d: row %d of step %d has kernel %s", e.Line, e.Row, e.Step, e.Kernel)
	switch {
	case e.Kernel == "":
		is = fmt.Sprintf("line %d: step %d ends before row %d", e.Line, e.Step, e.Row)
		fallthrough
	case e.Operator != "":
		return fmt.Sprintf("%s, but operator %s runs %s next: %s", is, e.Operator, e.Want, advice)
	}
	return fmt.Sprintf("%s, but all operators already have their rows: %s", is, advice)
}

// join finds the operator of each row.
func (r *executorchReader) join(line int) ([]launch, error) {
	launches := make([]launch, 0, len(r.rows))
	for i, routes := range r.routes {
		if len(routes) == 0 {
			continue
		}
		at := len(launches)
		route, fits := choose(routes, r.rows[at:])
		if fits < len(route) {
			m := &Mismatch{
				Line: line, Step: len(r.t.Steps), Row: at + fits,
				Operator: printable.Short(r.t.Graph.Ops[i].Name, maxKernel), Want: next(routes, route[:fits]),
			}
			if m.Row < len(r.rows) {
				m.Line, m.Kernel = r.rows[m.Row].line, r.rows[m.Row].kernel
			}
			return nil, m
		}
		for k, part := range route {
			row := &r.rows[at+k]
			launches = append(launches, launch{
				slot{i, part.place, part.label}, row.kernel, row.grid, row.time, trace.JoinedInOrder,
			})
		}
	}
	if at := len(launches); at < len(r.rows) {
		return nil, &Mismatch{
			Line: r.rows[at].line, Step: len(r.t.Steps), Row: at, Kernel: r.rows[at].kernel,
		}
	}
	return launches, nil
}
