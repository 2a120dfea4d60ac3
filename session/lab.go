package session

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gpuscope/internal/mapfile"
	"gpuscope/trace"
)

// KernelEdit is the edited source of a kernel.
type KernelEdit struct {
	Kernel string `json:"kernel"`         // name of the kernel in the graph
	Text   string `json:"text,omitempty"` // source in the format of KernelText; "" restores the original
	// Dispatch is the dispatch that provides the inputs for the comparison of both kernels. If it is nil, the
	// first dispatch of the step that runs the kernel is used.
	Dispatch *trace.DispatchID `json:"dispatch,omitempty"`
}

// Tried compares an edited kernel with the original.
type Tried struct {
	Kernel string `json:"kernel"` // name of the original kernel
	Name   string `json:"name"`   // name of the edited kernel in the trace
	Step   int    `json:"step"`   // index of the step in which both kernels were run
	// Dispatch is the dispatch in which both kernels were run in isolation, or nil if no dispatch of the step
	// runs the kernel. Dispatches is the number of dispatches that run the kernel in the step.
	Dispatch   *trace.DispatchID `json:"dispatch,omitempty"`
	Dispatches int               `json:"dispatches,omitempty"`
	Alone      *InTurns          `json:"alone,omitempty"` // isolated times; nil if they are not known
	Whole      *InTurns          `json:"whole,omitempty"` // times of the whole step
	Outputs    []Rewritten       `json:"outputs,omitempty"`
	// Stray reports that the edited kernel writes to state (such as the KV cache) where the original does
	// not. In this case the step was not run with the edited kernel.
	Stray bool `json:"stray,omitempty"`
	// Gap is the numeric error of the edited kernel's outputs, compared with a float64 reference on the same
	// inputs. It is nil if no output of the dispatch has a reference.
	Gap *trace.NumericError `json:"gap,omitempty"`
}

// Wrong returns the reason why the edited kernel must not replace the original, or "" if it may.
func (t *Tried) Wrong() string {
	unwritten := 0
	for i := range t.Outputs {
		unwritten += t.Outputs[i].Unwritten
	}
	switch {
	case t.Stray:
		return "it writes to state (such as the KV cache) where the original does not"
	case t.Gap != nil && !(t.Gap.Share <= 1):
		return "its error exceeds the tolerance: " + t.Gap.Over()
	case unwritten > 0:
		return fmt.Sprintf("it leaves out %d of the elements that the original kernel writes", unwritten)
	}
	return ""
}

// Verdict is the conclusion of the comparison of an edited kernel with the original.
type Verdict string

// Verdicts of the kernel lab.
const (
	VerdictFaster  Verdict = "faster"       // the step is significantly shorter
	VerdictSlower  Verdict = "slower"       // the step is significantly longer
	VerdictEqual   Verdict = "equal"        // the difference of the step times is not significant
	VerdictWrong   Verdict = "wrong"        // the edited kernel must not replace the original
	VerdictUntimed Verdict = "not-measured" // the kernel does not run in the step, or no timestamps
)

// Verdict returns the conclusion of the comparison. The times of the whole step decide, because a kernel that
// is faster in isolation is not always faster in a step.
func (t *Tried) Verdict() Verdict {
	switch {
	case t.Wrong() != "":
		return VerdictWrong
	case t.Dispatch == nil || t.Whole == nil:
		return VerdictUntimed
	case !t.Whole.Told():
		return VerdictEqual
	case t.Whole.Gain.NS > 0:
		return VerdictFaster
	}
	return VerdictSlower
}

// InTurns holds the times of the original kernel (Own) and of the edited kernel (New), measured in N
// interleaved runs. Gain is the time that the edited kernel saves, which is negative if this kernel is
// slower.
type InTurns struct {
	Own  Spread `json:"own"`
	New  Spread `json:"new"`
	Gain Spread `json:"gain"`
	N    int    `json:"n"`
}

// FewestTurns is the minimum number of runs for a significant gain. If there is no real gain, both quartiles
// have the same sign by chance in 37 % of all cases with 5 runs, in 9 % with 12, and in 1 % with 30.
const FewestTurns = 12

// Told reports whether the gain is significant, which means that both of its quartiles have the same sign and
// that there are at least FewestTurns runs.
func (t *InTurns) Told() bool { return t.N >= FewestTurns && (t.Gain.Q1NS > 0 || t.Gain.Q3NS < 0) }

// Within returns the error of the gain in ns. If the gain is significant (see Told), the error is the
// distance from the gain to the quartile closer to 0, so the error is smaller than the gain. Otherwise the
// error is the distance from 0 to the quartile farther from 0.
func (t *InTurns) Within() int64 {
	g := &t.Gain
	switch {
	case !t.Told():
		return max(g.Q3NS, -g.Q1NS)
	case g.Q1NS > 0:
		return g.NS - g.Q1NS
	}
	return g.Q3NS - g.NS
}

// Spread is a median time and its quartiles. In a gain that was measured on a GPU, NS is a trimmed mean
// instead of the median, limited to the range between the quartiles.
type Spread struct {
	NS   int64 `json:"ns"`
	Q1NS int64 `json:"q1_ns"`
	Q3NS int64 `json:"q3_ns"`
}

// Rewritten compares what the original kernel and the edited kernel write to one value.
type Rewritten struct {
	Value     trace.ValueID `json:"value"`
	Elements  int           `json:"elements"`
	Differ    int           `json:"differ"`    // number of elements that differ
	Unwritten int           `json:"unwritten"` // number of these that the edited kernel does not write
	MaxAbs    trace.Number  `json:"max_abs"`   // largest absolute difference
	Element   int           `json:"element"`   // index of the element that differs most
	Own       trace.Number  `json:"own"`       // what the original kernel writes to this element
	New       trace.Number  `json:"new"`
}

// SourceError is the error for a kernel source that does not compile, or that does not fit the kernel to be
// replaced. errors.Is(err, ErrUsage) is true for a SourceError.
type SourceError struct {
	File         string // name of the file
	Line, Column int    // position of the error, counted from 1; 0 if not known
	Text         string // description of the error
}

func (e *SourceError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
	}
	return e.File + ": " + e.Text
}

// Is reports whether target is ErrUsage.
func (e *SourceError) Is(target error) bool { return target == ErrUsage }

// In a compiler's error message, several lines show the position of the error. placeLine matches the line
// with the line and column numbers. pictureLine matches a line that quotes the source, or a line that marks
// the position below the quote.
var (
	placeLine   = regexp.MustCompile(`^┌─.*?:(\d+):(\d+)$`)
	pictureLine = regexp.MustCompile(`^(\d*) *│ *(.*)$`)
)

// CompilerError condenses a compiler's error message about the source of a kernel into a position and one
// line, such as: expected ...; in "x = ;". Of the quoted source it keeps only the first line. `file` is the
// name of the file with the source. `name` is the label of the kernel's pipeline.
func CompilerError(file, name string, err error) *SourceError {
	e := &SourceError{File: file}
	text := err.Error()
	for _, who := range []string{"compile kernel " + name + ": ", "pipeline " + name + ": ", "Shader '" + name + "' "} {
		text = strings.TrimPrefix(text, who)
	}
	in := ""
	var parts []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if m := placeLine.FindStringSubmatch(line); m != nil {
			if e.Line == 0 {
				e.Line, _ = strconv.Atoi(m[1]) // no error: the expression matches digits
				e.Column, _ = strconv.Atoi(m[2])
			}
		} else if m := pictureLine.FindStringSubmatch(line); m != nil {
			if m[1] != "" {
				in = cmp.Or(in, m[2])
			}
		} else if line != "" {
			parts = append(parts, line)
		}
	}
	if in != "" {
		parts = append(parts, fmt.Sprintf("in %q", in))
	}
	e.Text = strings.ReplaceAll(strings.Join(parts, "; "), ":; ", ": ")
	return e
}

// KernelSuffix is the extension of kernel source files: NAME.wgsl.
const KernelSuffix = ".wgsl"

const kernelLine = "// gpuscope kernel "

// KernelText returns the content of a kernel source file. The first line names the kernel and the constants
// that it was generated for. The WGSL source follows, with the constants as literal numbers.
func KernelText(name, constants, wgsl string) string {
	return kernelLine + strings.TrimSuffix(name+": "+constants, ": ") + "\n" + wgsl
}

// maxKernelText is the maximum size in bytes of a kernel source file. The longest kernel is many times
// smaller.
const maxKernelText = 1 << 20

// ReadKernelText reads a kernel source file. Errors name the file.
func ReadKernelText(path string) (string, error) {
	text, err := mapfile.Read(path, maxKernelText)
	return string(text), err
}

// KernelOf returns the name of the kernel that the first line of a source names, or "" if it names none.
func KernelOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	rest, ok := strings.CutPrefix(line, kernelLine)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimRight(rest, " \t\r"), ":")
	return name
}

// CheckKernelText returns an error if the first line of `text` is not the line that KernelText writes for the
// kernel `name` and the constants.
func CheckKernelText(text, name, constants string) error {
	want, _, _ := strings.Cut(KernelText(name, constants, ""), "\n")
	line, _, _ := strings.Cut(text, "\n")
	if line = strings.TrimRight(line, " \t\r"); line == want {
		return nil
	}
	if !strings.HasPrefix(line, kernelLine) {
		return fmt.Errorf("the first line must be %q", want)
	}
	return fmt.Errorf("the source was generated for %q, but this model has %q",
		strings.TrimPrefix(line, kernelLine), strings.TrimPrefix(want, kernelLine))
}
