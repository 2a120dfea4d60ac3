package model

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
)

func TestWrongUseIsRefusedBeforeAnythingRuns(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{MaxChunk: 16})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	runs := r.dev.Count(fake.Submit)
	for _, test := range []struct {
		name string
		c    session.Command
	}{
		{"an empty prompt", session.Command{Kind: session.Prompt}},
		{"ids past the context", promptOf(65)},
		{
			"a text past the context", session.Command{Kind: session.Prompt, Text: strings.Repeat("x", 64)},
		},
		{
			"ids and more past the context", session.Command{Kind: session.Prompt, Tokens: ids(60), N: 6},
		},
		{"more past the context", session.Command{Kind: session.Prompt, Tokens: ids(1), N: 65}},
		{
			"more without end", session.Command{Kind: session.Prompt, Tokens: ids(60), N: math.MaxInt},
		},
		{
			"an id past the last", session.Command{Kind: session.Prompt, Tokens: []int{1, 257}},
		},
		{"a negative id", session.Command{Kind: session.Prompt, Tokens: []int{-1}}},
		{"a text and ids", session.Command{Kind: session.Prompt, Text: "x", Tokens: []int{1}}},
		{
			"too large a chunk", session.Command{Kind: session.Prompt, Tokens: ids(5), Chunks: []int{17}},
		},
		{"an empty chunk", session.Command{Kind: session.Prompt, Tokens: ids(5), Chunks: []int{3, 0}}},
		{"a negative count", session.Command{Kind: session.Run, N: -1}},
		{"no such level", session.Command{Kind: session.Timing, Level: "often"}},
		{
			"no such dispatch", session.Command{
				Kind: session.Verify, Parts: []trace.Part{{Dispatches: []trace.DispatchID{1 << 20}}},
			},
		},
		{"too much to verify", session.Command{Kind: session.Verify, N: MostVerifyGFLOP + 1}},
		{"no such command", session.Command{Kind: "jump"}},
		{"save without a file", session.Command{Kind: session.Save, At: &session.LookAt{}}},
		{"save without a value", session.Command{Kind: session.Save, Save: &session.SaveTo{Path: "a.npy"}}},
		{"save in an unknown format", session.Command{
			Kind: session.Save, At: &session.LookAt{}, Save: &session.SaveTo{Path: "a.txt"},
		}},
		{"capture without a folder", session.Command{Kind: session.Capture}},
		{
			"capture of no dispatch", session.Command{
				Kind:    session.Capture,
				Capture: &session.CaptureTo{Dispatch: 1 << 20, Dir: "capture", MaxBytes: 1},
			},
		},
		{
			"capture over other files", session.Command{
				Kind: session.Capture, Capture: &session.CaptureTo{Dir: "testdata", MaxBytes: 1 << 20},
			},
		},
		{
			"capture without a limit", session.Command{
				Kind: session.Capture, Capture: &session.CaptureTo{Dir: "capture"},
			},
		},
		{"next with a count", session.Command{Kind: session.Next, N: 3}},
		{"run with a text", session.Command{Kind: session.Run, Text: "x"}},
		{"timing with chunks", session.Command{Kind: session.Timing, Level: "off", Chunks: []int{1}}},
	} {
		err := r.try(context.Background(), test.c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", test.name, err)
		}
		golden.Error(test.name, err)
		if len(r.events) != 0 {
			t.Errorf("%s: caused %d events", test.name, len(r.events))
		}
	}
	if n := r.dev.Count(fake.Submit); n != runs {
		t.Errorf("%d submits", n-runs)
	}
	r.wantStand(`step 1, position 6, "fg"`)
	fresh := newRig(t, Options{})
	for _, kind := range []session.CommandKind{
		session.Next, session.Run, session.Previous, session.Repeat,
		session.Observe, session.Verify,
	} {
		if err := fresh.try(context.Background(), session.Command{Kind: kind}); !errors.Is(err,
			session.ErrUsage) {
			t.Errorf("%s before a prompt: %v", kind, err)
		}
	}
}

// allCommands returns the commands of a session.
func allCommands() []stepping.Command {
	s := &live{Session: &stepping.Session{}}
	return slices.Concat(s.commands(), s.Commands())
}

func TestEveryCommandHasARow(t *testing.T) {
	kinds, rows := declaredKinds(t), map[session.CommandKind]bool{}
	for _, row := range allCommands() {
		if rows[row.Kind] = true; row.Doc == "" || row.Begin == nil {
			t.Errorf("%s: the row is incomplete", row.Kind)
		}
	}
	for _, kind := range kinds {
		if !rows[kind] {
			t.Errorf("%s: no row", kind)
		}
	}
	if len(kinds) != len(allCommands()) || !slices.Contains(kinds, session.Tokenize) {
		t.Errorf("%d rows, the commands are %v", len(allCommands()), kinds)
	}
}

// declaredKinds returns the constants of type session.CommandKind that the source declares.
func declaredKinds(t *testing.T) (kinds []session.CommandKind) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "session", "command.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "CommandKind" {
				kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, session.CommandKind(kind))
			}
		}
		return true
	})
	return kinds
}

func TestReplySaysWhatTheCommandDid(t *testing.T) {
	r := newRig(t, Options{MaxChunk: 4, Fuse: normsRun})
	do := func(ctx context.Context, c session.Command, want session.Reply) {
		t.Helper()
		got, _ := r.s.Do(ctx, c)
		if got.Note != nil {
			note := *got.Note // the trace has the note, too
			note.Text, got.Note = "", &note
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", c.Kind, d)
		}
	}
	all := context.Background()
	do(all, promptOf(10), session.Reply{Step: 2, Position: 10, Steps: 3})
	do(all, session.Command{Kind: session.Run, N: 5}, session.Reply{Step: 7, Position: 15, Steps: 5})
	do(all, session.Command{Kind: session.Previous}, session.Reply{Step: 6, Position: 14})
	do(all, session.Command{Kind: session.Repeat, N: 3}, session.Reply{Step: 6, Position: 14, Repeats: 3})
	two := []trace.Part{{Name: "two", Dispatches: []trace.DispatchID{0, 1}}}
	do(all, session.Command{Kind: session.Cost, N: 7, Parts: two}, session.Reply{
		Step: 6, Position: 14, Repeats: 7, Note: &trace.Event{Step: 6, Kind: "cost"},
	})
	do(all, session.Command{Kind: session.Verify, Parts: two}, session.Reply{Step: 6, Position: 14})
	dir := filepath.Join(t.TempDir(), "capture")
	do(all, session.Command{
		Kind: session.Capture, Capture: &session.CaptureTo{Dispatch: 1, Dir: dir, MaxBytes: 1 << 20},
	}, session.Reply{Step: 6, Position: 14, Captured: &session.Captured{
		Dir: dir, Dispatch: "layers.0.attn.norm", Kernel: "rms_norm", Bindings: 3, Bytes: 768,
	}})
	do(all, session.Command{
		Kind: session.Capture, Capture: &session.CaptureTo{Dispatch: 1, Dir: dir, MaxBytes: 1},
	}, session.Reply{Step: 6, Position: 14})
	file := filepath.Join(t.TempDir(), "value.npy")
	do(all, session.Command{
		Kind: session.Save, At: &session.LookAt{Value: r.value("embed")}, Save: &session.SaveTo{Path: file},
	}, session.Reply{Step: 6, Position: 14, Saved: &session.Saved{
		Path: file, Type: "float32", Dims: []int{1, 1, tinyDim}, Bytes: 128 + 4*tinyDim,
	}})
	do(all, session.Command{Kind: "jump"}, session.Reply{Step: 6, Position: 14})
	ctx, cancel := context.WithCancel(all)
	r.token = func(position int, tokens []int) int {
		if position == 16 {
			cancel()
		}
		return letters(position, tokens)
	}
	do(ctx, session.Command{Kind: session.Run}, session.Reply{Step: 10, Position: 17, Steps: 3})
	do(all, session.Command{Kind: session.Tokenize, Text: "Hi"}, session.Reply{
		Step: 10, Position: 17,
		Tokens: []session.Token{{ID: tinyEnd, Text: "<|end|>"}, {ID: 'H', Text: "H"}, {ID: 'i', Text: "i"}},
	})
	do(all, session.Command{Kind: session.Reset}, session.Reply{Step: -1})
}
