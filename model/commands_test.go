package model

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu/fake"
	"gpuscope/session"
	"gpuscope/trace"
)

func TestWrongUseIsRefusedBeforeAnythingRuns(t *testing.T) {
	r := newRig(t, Options{MaxChunk: 16})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	runs := r.dev.Count(fake.Submit)
	for _, test := range []struct {
		c    session.Command
		want string
	}{
		{session.Command{Kind: session.Prompt}, "the prompt is empty"},
		{promptOf(65), "the prompt has 65 tokens, but the context holds 64"},
		{
			session.Command{Kind: session.Prompt, Text: strings.Repeat("x", 64)},
			"the prompt has 65 tokens, but the context holds 64",
		},
		{
			session.Command{Kind: session.Prompt, Tokens: ids(60), N: 6},
			"the prompt has 60 tokens and 6 more were requested, but the context holds 64",
		},
		{session.Command{Kind: session.Prompt, Tokens: ids(1), N: 65}, "has 1 token and 65 more were requested"},
		{
			session.Command{Kind: session.Prompt, Tokens: ids(60), N: math.MaxInt},
			"the prompt has 60 tokens and 9223372036854775807 more were requested, but the context holds 64",
		},
		{
			session.Command{Kind: session.Prompt, Tokens: []int{1, 257}},
			"token 1 of the prompt has id 257; the model has ids 0 to 256",
		},
		{session.Command{Kind: session.Prompt, Tokens: []int{-1}}, "token 0 of the prompt has id -1"},
		{session.Command{Kind: session.Prompt, Text: "x", Tokens: []int{1}}, "give only one of them"},
		{
			session.Command{Kind: session.Prompt, Tokens: ids(5), Chunks: []int{17}},
			"chunk 0 is 17 tokens: want 1 to 16; to allow it, use --max-chunk 17",
		},
		{session.Command{Kind: session.Prompt, Tokens: ids(5), Chunks: []int{3, 0}}, "chunk 1 is 0 tokens"},
		{session.Command{Kind: session.Run, N: -1}, "run: the count is -1"},
		{session.Command{Kind: session.Timing, Level: "often"}, `timing level "often"`},
		{
			session.Command{
				Kind: session.Verify, Parts: []trace.Part{{Dispatches: []trace.DispatchID{1 << 20}}},
			},
			"no dispatch 1048576; the graph has",
		},
		{session.Command{Kind: session.Verify, N: MostVerifyGFLOP + 1}, "1073741825 GFLOP requested; the maximum is"},
		{session.Command{Kind: "jump"}, `command "jump": want one of prompt, next, run`},
		{session.Command{Kind: session.Next, N: 3}, "next: the field n is not accepted"},
		{session.Command{Kind: session.Run, Text: "x"}, "run: the field text is not accepted"},
		{session.Command{Kind: session.Timing, Level: "off", Chunks: []int{1}}, "timing: the field chunks is not accepted"},
	} {
		err := r.try(context.Background(), test.c)
		if !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.c, err, test.want)
		}
		if len(r.events) != 0 {
			t.Errorf("%+v: caused %d events", test.c, len(r.events))
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

func TestEveryCommandHasARow(t *testing.T) {
	kinds := declaredKinds(t)
	for _, kind := range kinds {
		row, err := commandOf(session.Command{Kind: kind})
		if err != nil || row.doc == "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if len(kinds) != len(commands) || !slices.Contains(kinds, session.Tokenize) {
		t.Errorf("%d rows, the commands are %v", len(commands), kinds)
	}
	fieldsOf := reflect.TypeFor[session.Command]().NumField() - 1
	if len(fields) != fieldsOf {
		t.Errorf("%d fields of a command are checked, it has %d beside its kind", len(fields), fieldsOf)
	}
}

// declaredKinds are the constants of type session.CommandKind, as they stand in the source.
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
	do(all, session.Command{Kind: session.Cost, N: 7, Parts: two},
		session.Reply{Step: 6, Position: 14, Repeats: 7})
	do(all, session.Command{Kind: session.Verify, Parts: two}, session.Reply{Step: 6, Position: 14})
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
