package tui

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/tui/tuitest"
)

// recording is a run of gpuscope on an H100: decode steps of a model of Llama 1B's shape with random weights
// and a vocabulary of 4,096 tokens, and the costs of the last one.
const recording = "testdata/llama-1b-h100.json.gz"

// pictures lists the pictures of the README and the manual. Each shows the program after the keys of a
// script: those of Dispatches and of Timeline on the recording, the others on a session that plays a run
// back. A word of the script is a key, or text to type if it starts with a quote.
var pictures = []struct {
	name, title string
	lines       int
	keys        string
}{
	{"step", "Step: 24 steps, the text, and how the time of one was spent", 36, "space v v c 1"},
	{"dispatches", "Dispatches: what rows cost, what to fix first", 36, "down down down down down down down down down down down down down"},
	{"why", "Why: the grid of a dispatch", 16, "space v v / 'split enter down down w"},
	{"resize", "Resize: which change re-planned which operator", 32, "s 3 down enter"},
	{"graph", "Graph: operators by layer, marked by what they cost", 36, "space v v c 4 A"},
	{"neighbourhood", "Graph: what computes an operator's inputs", 20, "s s 4 / 'sdpa enter down down p"},
	{"value", "Graph: the numbers inside a value", 30, "s s 4 / 'lm_head enter G enter G enter"},
	{"curves", "Curves: time against position", 36, "space v v 5 j"},
	{"lengths", "Curves: routes against the length of a prompt", 36, "space v v 5 a j l l l t"},
	{"timeline", "Timeline: the CPU and the GPU between two tokens", 36, "6 + + left"},
	{"palette", "The palette: every action by its name", 32, "space v v : 'co"},
}

// pictured returns the run in the pictures: llama, with a grid formula like those that the engine records.
func pictured() *trace.Trace {
	t := *llama
	t.Plans = slices.Clone(llama.Plans)
	for i := range t.Plans {
		if p := &t.Plans[i]; p.Kernel == "fd_split" {
			params, err := hex.DecodeString(p.Params)
			if err != nil {
				panic(err)
			}
			context := int64(binary.LittleEndian.Uint32(params[4:]))
			p.Grid = &trace.Grid{Rule: "linear", Terms: []trace.Term{
				{Name: "heads", Value: 32, Per: 1}, {Name: "context", Value: context, Per: 64},
			}}
		}
	}
	return &t
}

func TestPicturesAreOfThisProgram(t *testing.T) {
	update := wordingtest.Updating()
	const w = 132
	run := pictured()
	for _, p := range some(pictures) {
		t.Run(p.name, func(t *testing.T) {
			var d *driver
			if p.name == "dispatches" || p.name == "timeline" {
				recorded, err := trace.ReadFile(recording)
				if err != nil {
					t.Fatal(err)
				}
				d = drive(t, w, p.lines, recorded, nil, Options{Color: "true"})
			} else {
				d = drive(t, w, p.lines, run, &tuitest.Script{},
					Options{Prompt: "Once upon a time", Color: "true"})
			}
			for _, key := range strings.Fields(p.keys) {
				if text, ok := strings.CutPrefix(key, "'"); ok {
					d.typed(text)
				} else {
					d.press(key)
				}
			}
			d.app.note = "" // a note is visible only for a while
			want := svg(d.app.View(), p.title, w, p.lines)
			if len(want) > 120_000 {
				t.Errorf("%d bytes, want at most 120,000", len(want))
			}
			path := "../docs/img/" + p.name + ".svg"
			if update {
				if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if have, err := os.ReadFile(path); err != nil || string(have) != want {
				t.Errorf("%s is outdated (%v): go test ./tui -run Pictures -update; screen:\n%s", path, err,
					d.screen())
			}
		})
	}
}
