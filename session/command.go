package session

import (
	"strconv"
	"strings"
	"time"

	"gpuscope/trace"
)

// CommandKind names a command.
type CommandKind string

// These are the commands. A table in package model holds the checks and the implementation of each command.
const (
	Prompt   CommandKind = "prompt"   // replace the text by Text (or Tokens) and prefill it in chunks
	Next     CommandKind = "next"     // decode one token
	Run      CommandKind = "run"      // decode N tokens; 0 means until the end token or a full context
	Plan     CommandKind = "plan"     // plan a step of N tokens at position Until; the step does not run
	Previous CommandKind = "previous" // step back to the position before the current step
	Repeat   CommandKind = "repeat"   // run a step N more times: step Step, or the current step by default
	Upto     CommandKind = "upto"     // run the current step again up to dispatch N; Next completes it
	Edit     CommandKind = "edit"     // keep the first N tokens of the text and append Text (or Tokens)
	Chunk    CommandKind = "chunk"    // set the tokens per step of later prompts to N; 0 means the maximum
	Observe  CommandKind = "observe"  // run the current step with and without timing to measure the overhead
	Cost     CommandKind = "cost"     // skip Parts one at a time and measure the time that each skip saves
	TimeOp   CommandKind = "time_op"  // time operator Op in isolation N times per length and route
	Ceilings CommandKind = "ceilings" // measure the peak rates of the device
	Reset    CommandKind = "reset"    // clear the text and return to position 0
	Timing   CommandKind = "timing"   // set the timing level to Level
	Tokenize CommandKind = "tokenize" // return the tokens that Text has as a prompt; no step runs
	Look     CommandKind = "look"     // return the elements or statistics of the value that At selects
	Save     CommandKind = "save"     // write the value that At selects to a file; see Command.Save
	Verify   CommandKind = "verify"   // compare a step of the text with float64 references
	Lab      CommandKind = "lab"      // compare a kernel with the edited source in Edit by N interleaved runs
	Kernel   CommandKind = "kernel"   // use the source in Edit for its kernel in all later steps
	Capture  CommandKind = "capture"  // write a dispatch of a step to a folder; see Command.Capture
	Resume   CommandKind = "resume"   // continue from Left, the state of a crashed engine
)

// ResetText is the message that the log and the screen show after a Reset.
const ResetText = "reset: the text is empty and the position is 0"

// ExecutionsResetText is the message after a Reset of a program that is not a language model.
const ExecutionsResetText = "reset: the buffers of the program have their initial contents"

// Command is a request from a front end.
type Command struct {
	Kind   CommandKind `json:"kind"`
	Text   string      `json:"text,omitempty"`
	Tokens []int       `json:"tokens,omitempty"` // token IDs that are used instead of Text
	// Chat is true if the Text of a Prompt is the user's next message in a conversation. The model's chat
	// template appends the message to the existing text, which stays in the KV cache. If there is no text
	// yet, a new conversation begins.
	Chat bool `json:"chat,omitempty"`
	// Chunks holds the sizes of the steps that prefill a prompt. The last size repeats until the prompt is
	// used up. Without Chunks each step reads as many tokens as possible.
	Chunks []int `json:"chunks,omitempty"`
	// The meaning of N depends on the command. For a Prompt it is the number of tokens to generate. A prompt
	// is refused if these tokens do not fit in the context. For a Verify it is the maximum work of each
	// reference in GFLOP. For most other commands it is a number of repetitions.
	N     int          `json:"n,omitempty"`
	Level trace.Timing `json:"level,omitempty"`
	At    *LookAt      `json:"at,omitempty"` // the value that a Look or a Save reads
	// Parts are parts of a step to skip (Cost) or to check (Verify). If N is 0 and some of these parts have
	// the field Rival set, a Cost ends as soon as the order of these parts is significant, and at the latest
	// after CostBudget.
	Parts []trace.Part `json:"parts,omitempty"`
	Step  *int         `json:"step,omitempty"` // index of the step in the trace
	// Until is a position. A Run pauses at this position at the latest, and a Plan plans a step that begins
	// there. Breaks holds further breakpoints for a Run, or breakpoints for the prefill of a Prompt.
	Until  int     `json:"until,omitempty"`
	Breaks []Break `json:"breaks,omitempty"`
	Left   *Left   `json:"left,omitempty"` // the state that a Resume restores
	// Op is the operator that a TimeOp measures. Lengths holds the token counts at which the operator is
	// timed, always from position 0.
	Op      *trace.OpID `json:"op,omitempty"`
	Lengths []int       `json:"lengths,omitempty"`
	Edit    *KernelEdit `json:"edit,omitempty"` // the source of a Lab or a Kernel
	Capture *CaptureTo  `json:"capture,omitempty"`
	Save    *SaveTo     `json:"save,omitempty"`
}

// CostBudget returns the maximum duration of a Cost that finds out which part to fix first (see
// Command.Parts). A software device needs more time, because a step takes longer there and varies more.
func CostBudget(software bool) time.Duration {
	if software {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// Left is what another engine needs to continue from the place where an engine crashed.
type Left struct {
	Last   *Shape `json:"last,omitempty"`   // shape of the last step in the trace
	Prompt []int  `json:"prompt,omitempty"` // token IDs
	Kept   []int  `json:"kept,omitempty"`   // token counts of steps of earlier texts whose positions are kept
	Turns  []Turn `json:"turns,omitempty"`  // steps of the current text
	// Talk is the conversation up to the latest prompt, without its answer: see Text.Talk.
	Talk   []Exchange   `json:"talk,omitempty"`
	Timing trace.Timing `json:"timing,omitempty"`
	Chunk  int          `json:"chunk,omitempty"`
}

// Shape is the position and the token count of a step. These two numbers determine the grids of the
// dispatches.
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

// Turn is a step that belongs to the current text.
type Turn struct {
	Step   int  `json:"step"`            // index of the step in the trace
	Tokens int  `json:"tokens"`          // number of input tokens
	Token  *int `json:"token,omitempty"` // output token
}

// Reply is the result of a command. If the command failed or was cancelled, the reply describes the part that
// was done.
type Reply struct {
	Step     int `json:"step"`            // index of the current step after the command, -1 before the first
	Position int `json:"position"`        // number of positions in use after the command
	Steps    int `json:"steps,omitempty"` // number of steps that the command recorded
	// Repeats is the number of repetitions. For a Repeat or an Observe, this is the number of runs at each
	// timing level. For a Cost, it is the number of runs without each part. If Parts is empty, it is the
	// number of runs of the whole step. For a TimeOp, it is the number of recorded trials.
	Repeats int `json:"repeats,omitempty"`
	// Tokens is the result of a Tokenize.
	Tokens []Token `json:"tokens,omitempty"`
	// Tensor is the result of a Look.
	Tensor *Tensor `json:"tensor,omitempty"`
	// Hit is the event that describes the breakpoint at which the run paused.
	Hit *trace.Event `json:"hit,omitempty"`
	// Tried is the result of a Lab.
	Tried *Tried `json:"tried,omitempty"`
	// Saved is the result of a Save.
	Saved *Saved `json:"saved,omitempty"`
	// Captured is the result of a Capture.
	Captured *Captured `json:"captured,omitempty"`
	// Note is an event of the trace that the front end shows as the outcome of the command. Examples:
	// executions or steps ran again to restore a state after a step back; the chat template rendered earlier
	// messages differently, so that only some tokens stay in the KV cache.
	Note *trace.Event `json:"note,omitempty"`
}
