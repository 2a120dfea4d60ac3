package session

import (
	"fmt"
	"strings"

	"gpuscope/internal/mapfile"
	"gpuscope/trace"
)

// KernelEdit is an edited source of a kernel.
type KernelEdit struct {
	Kernel string `json:"kernel"`         // name of the kernel in the graph
	Text   string `json:"text,omitempty"` // source in the format of KernelText; "" restores the original
	// Dispatch is the dispatch whose inputs are used to try the source; nil means the first dispatch of the
	// step that runs the kernel.
	Dispatch *trace.DispatchID `json:"dispatch,omitempty"`
}

// Tried compares an edited kernel with the original.
type Tried struct {
	Kernel string `json:"kernel"` // name of the original kernel
	Name   string `json:"name"`   // name of the edited kernel in the trace
	Step   int    `json:"step"`   // index of the step in which both kernels ran
	// Dispatch is the dispatch in which both kernels were run in isolation; nil if the step never runs the
	// kernel. Dispatches is the number of dispatches of the step that run the kernel.
	Dispatch   *trace.DispatchID `json:"dispatch,omitempty"`
	Dispatches int               `json:"dispatches,omitempty"`
	Alone      *InTurns          `json:"alone,omitempty"` // isolated dispatch; nil if it could not be timed
	Whole      *InTurns          `json:"whole,omitempty"` // times of the whole step
	Outputs    []Rewritten       `json:"outputs,omitempty"`
	// Stray reports that the edited kernel writes State, such as the KV cache, where the original does not.
	// The step was not run with the edited kernel in this case.
	Stray bool `json:"stray,omitempty"`
	// Gap is the numeric error of the edited kernel's outputs against the float64 reference on the same
	// inputs; nil if no output of the dispatch has a reference.
	Gap *trace.NumericError `json:"gap,omitempty"`
}

// Wrong returns the reason why the edited kernel must not replace the original, or "" if there is none.
func (t *Tried) Wrong() string {
	unwritten := 0
	for i := range t.Outputs {
		unwritten += t.Outputs[i].Unwritten
	}
	switch {
	case t.Stray:
		return "it writes State outputs that the original kernel does not write"
	case t.Gap != nil && !(t.Gap.Share <= 1):
		return "its error exceeds the tolerance: " + t.Gap.Over()
	case unwritten > 0:
		return fmt.Sprintf("it does not write %d elements that the original kernel writes", unwritten)
	}
	return ""
}

// InTurns holds the times of the original and the edited kernel, measured in interleaved runs, and the gain.
// The gain is the time that the edited kernel saves. It is negative if the edited kernel is slower.
type InTurns struct {
	Own  Spread `json:"own"`
	New  Spread `json:"new"`
	Gain Spread `json:"gain"`
	N    int    `json:"n"`
}

// Told reports whether the gain is significant: both of its quartiles have the same sign.
func (t *InTurns) Told() bool { return t.Gain.Q1NS > 0 || t.Gain.Q3NS < 0 }

// Spread is a median with its quartiles. For gains on a GPU, NS is a trimmed mean instead of the median.
type Spread struct {
	NS   int64 `json:"ns"`
	Q1NS int64 `json:"q1_ns"`
	Q3NS int64 `json:"q3_ns"`
}

// Rewritten compares the outputs of the original kernel and the edited kernel for one value.
type Rewritten struct {
	Value     trace.ValueID `json:"value"`
	Elements  int           `json:"elements"`
	Differ    int           `json:"differ"`    // number of elements that differ
	Unwritten int           `json:"unwritten"` // differing elements that the edited kernel does not write
	MaxAbs    trace.Number  `json:"max_abs"`   // largest absolute difference
	Element   int           `json:"element"`   // index of the element with the largest difference
	Own       trace.Number  `json:"own"`       // value of this element from the original kernel
	New       trace.Number  `json:"new"`
}

// KernelSuffix is the extension of kernel source files: NAME.wgsl.
const KernelSuffix = ".wgsl"

const kernelLine = "// gpuscope kernel "

// KernelText returns the content of a kernel source file. The first line names the kernel and the constants
// that it was generated for. The WGSL source follows, with the constants as literal numbers.
func KernelText(name, constants, wgsl string) string {
	return kernelLine + strings.TrimSuffix(name+": "+constants, ": ") + "\n" + wgsl
}

// maxKernelText is the maximum size in bytes of a kernel source, many times the size of the longest kernel.
const maxKernelText = 1 << 20

// ReadKernelText reads a kernel source file. Errors name the file.
func ReadKernelText(path string) (string, error) {
	text, err := mapfile.Read(path, maxKernelText)
	return string(text), err
}

// CheckKernelText returns an error if the first line of text does not name this kernel and these constants.
func CheckKernelText(text, name, constants string) error {
	want, _, _ := strings.Cut(KernelText(name, constants, ""), "\n")
	line, _, _ := strings.Cut(text, "\n")
	if line = strings.TrimRight(line, " \t\r"); line == want {
		return nil
	}
	if !strings.HasPrefix(line, kernelLine) {
		return fmt.Errorf("the first line must be %q", want)
	}
	return fmt.Errorf("the source was made for %q, but this model has %q",
		strings.TrimPrefix(line, kernelLine), strings.TrimPrefix(want, kernelLine))
}
