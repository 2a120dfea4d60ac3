package session

import (
	"strconv"
	"strings"

	"gpuscope/trace"
)

// CommandKind names a command.
type CommandKind string

// The commands. A table in package model holds the checks and the implementation of each command.
const (
	Prompt   CommandKind = "prompt"   // replace the text by Text (or Tokens) and prefill it in chunks
	Next     CommandKind = "next"     // decode one token
	Run      CommandKind = "run"      // decode N tokens; 0 means until the end token or a full context
	Plan     CommandKind = "plan"     // plan a step of N tokens at position Until without a device
	Previous CommandKind = "previous" // step back to the position before the current step
	Repeat   CommandKind = "repeat"   // run step Step of the text (default: the current one) N more times
	Upto     CommandKind = "upto"     // run the current step again up to dispatch N; Next completes it
	Edit     CommandKind = "edit"     // keep the first N tokens of the text and append Text (or Tokens)
	Chunk    CommandKind = "chunk"    // prefill later prompts N tokens per step; 0 means the maximum
	Observe  CommandKind = "observe"  // run the current step with and without timing to get the overhead
	Cost     CommandKind = "cost"     // skip each of Parts in turn and measure the time that the step saves
	TimeOp   CommandKind = "time_op"  // time operator Op in isolation N times per length and route
	Ceilings CommandKind = "ceilings" // measure the peak rates of the device
	Reset    CommandKind = "reset"    // clear the text and return to position 0
	Timing   CommandKind = "timing"   // set the timing level to Level
	Tokenize CommandKind = "tokenize" // return the tokens of Text as a prompt without running a step
	Look     CommandKind = "look"     // return the elements or statistics of the value that At selects
	Verify   CommandKind = "verify"   // compare a step of the text with float64 references
	Lab      CommandKind = "lab"      // compare a kernel with its edited source Edit in N interleaved runs
	Kernel   CommandKind = "kernel"   // use the source in Edit for its kernel in all later steps
	Resume   CommandKind = "resume"   // restore the state of a crashed engine from Left
)

// ResetText describes a Reset, both in the log and on the screen.
const ResetText = "reset: the text is empty, at position 0"

// Command is a request from a front end.
type Command struct {
	Kind   CommandKind `json:"kind"`
	Text   string      `json:"text,omitempty"`
	Tokens []int       `json:"tokens,omitempty"` // used as they are instead of Text
	// Chat reports that the Text of a Prompt is a user message of a conversation. The model's chat template
	// appends it to the text so far, which stays in the KV cache. If there is no text yet, a conversation
	// begins.
	Chat bool `json:"chat,omitempty"`
	// Chunks holds the sizes of the steps that prefill a prompt. The last size repeats until the prompt is
	// used up. Without Chunks each step reads as many tokens as possible.
	Chunks []int `json:"chunks,omitempty"`
	// N is a number of repetitions for most commands. For a Verify it is the maximum work of each reference
	// in GFLOP. For a Prompt it is the number of tokens that will be generated: a prompt that leaves no
	// room for them in the context is refused.
	N     int          `json:"n,omitempty"`
	Level trace.Timing `json:"level,omitempty"`
	At    *LookAt      `json:"at,omitempty"`    // the value that a Look reads
	Parts []trace.Part `json:"parts,omitempty"` // parts of a step to skip (Cost) or to check (Verify)
	Step  *int         `json:"step,omitempty"`  // index of the step in the trace
	// Until is a position: for a Run, where it pauses at the latest; for a Plan, where the planned step
	// begins. Breaks holds further breakpoints for a Run, or for the prefill of a Prompt.
	Until  int     `json:"until,omitempty"`
	Breaks []Break `json:"breaks,omitempty"`
	Left   *Left   `json:"left,omitempty"` // the state that a Resume restores
	// Op is the operator that a TimeOp measures. Lengths holds the token counts at which the operator is
	// timed, always from position 0.
	Op      *trace.OpID `json:"op,omitempty"`
	Lengths []int       `json:"lengths,omitempty"`
	Edit    *KernelEdit `json:"edit,omitempty"` // the source of a Lab or a Kernel
}

// Left is the state of a crashed engine: everything that another engine needs to continue from the same
// place.
type Left struct {
	Last   *Shape `json:"last,omitempty"`   // shape of the last step in the trace
	Prompt []int  `json:"prompt,omitempty"` // token IDs
	Kept   []int  `json:"kept,omitempty"`   // token counts of steps kept from earlier texts
	Turns  []Turn `json:"turns,omitempty"`  // steps of the current text
	// Talk is the conversation up to the latest prompt, as in Text.Talk. The latest answer is not included.
	Talk   []Exchange   `json:"talk,omitempty"`
	Timing trace.Timing `json:"timing,omitempty"`
	Chunk  int          `json:"chunk,omitempty"`
}

// Shape holds the position and the token count of a step, which determine the grids of its dispatches.
type Shape struct {
	Step     int `json:"step"` // index of the step in the trace
	Position int `json:"position"`
	Tokens   int `json:"tokens"`
}

// ParseShape parses the shape of a step as a user types it: tokens and position, for example "512,0".
func ParseShape(text string) (tokens, position int, ok bool) {
	m, pos, ok := strings.Cut(text, ",")
	tokens, err1 := strconv.Atoi(strings.TrimSpace(m))
	position, err2 := strconv.Atoi(strings.TrimSpace(pos))
	return tokens, position, ok && err1 == nil && err2 == nil
}

// Turn is one step of a text.
type Turn struct {
	Step   int  `json:"step"`            // index of the step in the trace
	Tokens int  `json:"tokens"`          // number of input tokens
	Token  *int `json:"token,omitempty"` // output token
}

// Reply is the result of a command. If the command failed or was cancelled, the reply reports what was done
// before.
type Reply struct {
	Step     int `json:"step"`            // index of the current step after the command, -1 before the first
	Position int `json:"position"`        // number of positions in use after the command
	Steps    int `json:"steps,omitempty"` // number of steps that the command recorded
	// Repeats is the number of repetitions. After a Repeat or an Observe it counts the runs at each timing
	// level. After a Cost it counts the runs without each part; if Parts is empty, it counts the runs of the
	// whole step. After a TimeOp it counts the recorded trials.
	Repeats int `json:"repeats,omitempty"`
	// Tokens is the result of a Tokenize.
	Tokens []Token `json:"tokens,omitempty"`
	// Tensor is the result of a Look.
	Tensor *Tensor `json:"tensor,omitempty"`
	// Hit is the event that names the breakpoint at which a run paused.
	Hit *trace.Event `json:"hit,omitempty"`
	// Tried is the result of a Lab.
	Tried *Tried `json:"tried,omitempty"`
	// Rewritten is set if the chat template rendered earlier turns differently than before. The event
	// reports how much of the conversation stays in the KV cache.
	Rewritten *trace.Event `json:"rewritten,omitempty"`
}
