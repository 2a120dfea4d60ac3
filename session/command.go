package session

import (
	"strconv"
	"strings"

	"gpuscope/trace"
)

// CommandKind names a command.
type CommandKind string

// The commands. What each checks and does is its row in the table of package model.
const (
	Prompt   CommandKind = "prompt"   // replace the text by Text (or Tokens) and prefill it, in chunks
	Next     CommandKind = "next"     // decode one token
	Run      CommandKind = "run"      // decode N tokens (0: until the end token or the context's end)
	Plan     CommandKind = "plan"     // without a device: a step of N tokens at position Until
	Previous CommandKind = "previous" // set the position back by one step
	Repeat   CommandKind = "repeat"   // run a step of the text, the current or Step, again N times
	Upto     CommandKind = "upto"     // run the current step again up to dispatch N; Next finishes it
	Edit     CommandKind = "edit"     // keep the first N tokens of the text and put Text (or Tokens) after
	Chunk    CommandKind = "chunk"    // prompts to come are read N tokens a step (0: as many as it can take)
	Observe  CommandKind = "observe"  // run the current step again with timing and without: what timing costs
	Cost     CommandKind = "cost"     // run a step of the text with each of Parts left out: what that saves
	TimeOp   CommandKind = "time_op"  // time operator Op alone, at each of Lengths, on each route, N times
	Ceilings CommandKind = "ceilings" // measure what the device can do at best
	Reset    CommandKind = "reset"    // position 0, no text
	Timing   CommandKind = "timing"   // set the timing level to Level
	Tokenize CommandKind = "tokenize" // tell the tokens of Text as a prompt; nothing runs
	Look     CommandKind = "look"     // tell the numbers in a value, as At says
	Verify   CommandKind = "verify"   // hold a step of the text to float64 references: numeric gaps
	Lab      CommandKind = "lab"      // run a kernel and another text of it, Edit, in turns, N times
	Kernel   CommandKind = "kernel"   // steps to come run the text of Edit in place of its kernel's own
	Resume   CommandKind = "resume"   // go on where another engine was that has gone, as Left says
)

// ResetText is what is told of a Reset, in the log as on the screen.
const ResetText = "reset: the text is empty, at position 0"

// Command is one request of a front end.
type Command struct {
	Kind   CommandKind `json:"kind"`
	Text   string      `json:"text,omitempty"`
	Tokens []int       `json:"tokens,omitempty"` // instead of Text, taken as they are
	// Chat says that a Prompt's Text is a turn of the user: the model's chat template puts it after the text
	// so far, which stays in the cache, or begins a conversation.
	Chat bool `json:"chat,omitempty"`
	// Chunks are the sizes of the steps that prefill a prompt; the last one repeats until the prompt is used
	// up. Without them a step takes as many tokens as it can.
	Chunks []int `json:"chunks,omitempty"`
	// N is how many times, of a Verify how many GFLOP each of its references may take. Of a prompt it is how
	// many tokens are to be generated in all: a prompt that leaves no room for them is refused.
	N     int          `json:"n,omitempty"`
	Level trace.Timing `json:"level,omitempty"`
	At    *LookAt      `json:"at,omitempty"`    // of a Look
	Parts []trace.Part `json:"parts,omitempty"` // of a step: left out each as a whole; verified alone
	Step  *int         `json:"step,omitempty"`  // index in the trace
	// Until is the position at which a run pauses at the latest, or a planned step begins. Breaks are what
	// else makes a run pause, or a prompt that is taken in.
	Until  int     `json:"until,omitempty"`
	Breaks []Break `json:"breaks,omitempty"`
	Left   *Left   `json:"left,omitempty"` // of a Resume
	// Op is the operator of a TimeOp, Lengths the numbers of tokens at which it is timed, from position 0.
	Op      *trace.OpID `json:"op,omitempty"`
	Lengths []int       `json:"lengths,omitempty"`
	Edit    *KernelEdit `json:"edit,omitempty"` // of a Lab or a Kernel
}

// Left is what an engine that has gone left: all that another one needs to stand where it stood.
type Left struct {
	Last   *Shape `json:"last,omitempty"`   // of the last step in the trace
	Prompt []int  `json:"prompt,omitempty"` // ids
	Kept   []int  `json:"kept,omitempty"`   // sizes of the steps of former texts whose positions it kept
	Turns  []Turn `json:"turns,omitempty"`  // the steps of the text
	// Talk are the exchanges of a conversation, as in Text.
	Talk   []Exchange   `json:"talk,omitempty"`
	Timing trace.Timing `json:"timing,omitempty"`
	Chunk  int          `json:"chunk,omitempty"`
}

// Shape is what a step's grids follow from.
type Shape struct {
	Step     int `json:"step"` // its index in the trace
	Position int `json:"position"`
	Tokens   int `json:"tokens"`
}

// ParseShape reads what a person types for the shape of a step: its tokens and its position, as "512,0".
func ParseShape(text string) (tokens, position int, ok bool) {
	m, pos, ok := strings.Cut(text, ",")
	tokens, err1 := strconv.Atoi(strings.TrimSpace(m))
	position, err2 := strconv.Atoi(strings.TrimSpace(pos))
	return tokens, position, ok && err1 == nil && err2 == nil
}

// Turn is a step of a text.
type Turn struct {
	Step   int  `json:"step"`            // its index in the trace
	Tokens int  `json:"tokens"`          // that went in
	Token  *int `json:"token,omitempty"` // that came out
}

// Reply is what a command gave. Where the command failed or was cancelled on its way it says what was done
// until then.
type Reply struct {
	Step     int `json:"step"`            // the current step's index after it, -1 before the first
	Position int `json:"position"`        // positions in use after it
	Steps    int `json:"steps,omitempty"` // that it recorded
	// Repeats of the current step, at each timing level that it was run at; of a Cost how often each part was
	// left out, or, where there are none, the whole step ran; of a TimeOp the trials that it recorded.
	Repeats int `json:"repeats,omitempty"`
	// Tokens are those of a Tokenize.
	Tokens []Token `json:"tokens,omitempty"`
	// Tensor is what a Look saw.
	Tensor *Tensor `json:"tensor,omitempty"`
	// Hit is the event that says at which of its breaks a run has paused.
	Hit *trace.Event `json:"hit,omitempty"`
	// Tried is what came of a Lab.
	Tried *Tried `json:"tried,omitempty"`
	// Rewritten is there where the chat template renders earlier turns differently than before: an event
	// that says how much of the conversation stays in the cache.
	Rewritten *trace.Event `json:"rewritten,omitempty"`
}
