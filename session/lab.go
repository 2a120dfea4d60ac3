package session

import (
	"fmt"
	"strings"

	"gpuscope/internal/mapfile"
	"gpuscope/trace"
)

// KernelEdit is another text of a kernel.
type KernelEdit struct {
	Kernel string `json:"kernel"`         // by the name that the graph has for it
	Text   string `json:"text,omitempty"` // as KernelText has it; "" is the kernel's own
	// Dispatch is the one on whose inputs a text is tried, nil the first of the step that runs the kernel.
	Dispatch *trace.DispatchID `json:"dispatch,omitempty"`
}

// Tried is what came of another text of a kernel.
type Tried struct {
	Kernel string `json:"kernel"` // that it is of
	Name   string `json:"name"`   // by which the trace tells it from that
	Step   int    `json:"step"`   // in which both ran
	// Dispatch is the one that both ran alone, nil where none of the step runs the kernel, and Dispatches how
	// many of the step do.
	Dispatch   *trace.DispatchID `json:"dispatch,omitempty"`
	Dispatches int               `json:"dispatches,omitempty"`
	Alone      *InTurns          `json:"alone,omitempty"` // the dispatch; nil where nothing could be timed
	Whole      *InTurns          `json:"whole,omitempty"` // the step
	Outputs    []Rewritten       `json:"outputs,omitempty"`
	// Stray says that the other text writes State, such as the cache, where the kernel does not: the step was
	// not run with it.
	Stray bool `json:"stray,omitempty"`
	// Gap is how far what it gives is from the float64 reference on the same inputs, nil where the dispatch
	// gives nothing that has one.
	Gap *trace.NumericError `json:"gap,omitempty"`
}

// Wrong is why the other text is not to take the kernel's place, "" for nothing.
func (t *Tried) Wrong() string {
	unwritten := 0
	for i := range t.Outputs {
		unwritten += t.Outputs[i].Unwritten
	}
	switch {
	case t.Stray:
		return "it writes State outputs that the kernel does not write"
	case t.Gap != nil && !(t.Gap.Share <= 1):
		return "its error exceeds the tolerance: " + t.Gap.Over()
	case unwritten > 0:
		return fmt.Sprintf("it does not write %d elements that the kernel writes", unwritten)
	}
	return ""
}

// InTurns is what a kernel and another text of it took in turns, and how much less the other took: negative
// where it was slower.
type InTurns struct {
	Own  Spread `json:"own"`
	New  Spread `json:"new"`
	Gain Spread `json:"gain"`
	N    int    `json:"n"`
}

// Told says whether the gain can be told from none: its quartiles lie on one side.
func (t *InTurns) Told() bool { return t.Gain.Q1NS > 0 || t.Gain.Q3NS < 0 }

// Spread is a median, of gains on a GPU a trimmed mean, with its quartiles.
type Spread struct {
	NS   int64 `json:"ns"`
	Q1NS int64 `json:"q1_ns"`
	Q3NS int64 `json:"q3_ns"`
}

// Rewritten compares what a kernel and another text of it write of a value.
type Rewritten struct {
	Value     trace.ValueID `json:"value"`
	Elements  int           `json:"elements"`
	Differ    int           `json:"differ"`    // of them
	Unwritten int           `json:"unwritten"` // of these: the other text does not write them
	MaxAbs    trace.Number  `json:"max_abs"`   // the largest difference,
	Element   int           `json:"element"`   // where it is,
	Own       trace.Number  `json:"own"`       // and what they have there
	New       trace.Number  `json:"new"`
}

// KernelSuffix is what names of files end in that have a kernel's text: NAME.wgsl.
const KernelSuffix = ".wgsl"

const kernelLine = "// gpuscope kernel "

// KernelText is the text of a kernel as a file has it: after a line that says which kernel it is and for
// which constants it was made, which are numbers in it.
func KernelText(name, constants, wgsl string) string {
	return kernelLine + strings.TrimSuffix(name+": "+constants, ": ") + "\n" + wgsl
}

// maxKernelText is how many bytes the text of a kernel may have, many times what the longest has.
const maxKernelText = 1 << 20

// ReadKernelText is the text in a file of a kernel. Errors name it.
func ReadKernelText(path string) (string, error) {
	text, err := mapfile.Read(path, maxKernelText)
	return string(text), err
}

// CheckKernelText says why a text is not one of a kernel.
func CheckKernelText(text, name, constants string) error {
	want, _, _ := strings.Cut(KernelText(name, constants, ""), "\n")
	line, _, _ := strings.Cut(text, "\n")
	if line = strings.TrimRight(line, " \t\r"); line == want {
		return nil
	}
	if !strings.HasPrefix(line, kernelLine) {
		return fmt.Errorf("its first line must be %q", want)
	}
	return fmt.Errorf("it was made for %q, but this model has %q", strings.TrimPrefix(line, kernelLine),
		strings.TrimPrefix(want, kernelLine))
}
