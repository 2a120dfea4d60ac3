package tui

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/session"
	"gpuscope/tui/tuitest"
)

// heard returns a script that appends every prompt to list.
func heard(list *[]session.Command) tuitest.Script {
	var mu sync.Mutex
	return tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		mu.Lock()
		defer mu.Unlock()
		if c.Kind == session.Prompt {
			*list = append(*list, c)
		}
		return nil
	}}
}

// In a conversation the prompt key sends the turns of the user.
func TestAConversationIsTypedTurnByTurn(t *testing.T) {
	t.Parallel()
	var got []session.Command
	x := start(t, context.Background(), opens(heard(&got)), Options{Chat: true})
	x.sees("[PAUSED]", "no step yet")
	x.press("i").sees("your turn:").press("Hello" + enter).sees("step 0 prefill pos 0")
	x.press("s").sees("step 1 decode").press("i").press("And then?"+enter).sees("prefill", "[PAUSED]")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	want := []session.Command{
		{Kind: session.Prompt, Text: "Hello", Chat: true},
		{Kind: session.Prompt, Text: "And then?", Chat: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPlainModeHoldsAConversation(t *testing.T) {
	t.Parallel()
	for _, chat := range []bool{false, true} {
		var got []session.Command
		var out strings.Builder
		err := Run(context.Background(), opens(heard(&got)), Options{
			Plain: true, Chat: chat, Prompt: "Hello", Output: &out, Input: strings.NewReader("s\np And then?\n"),
		})
		if err != nil {
			t.Fatal(err, out.String())
		}
		want := []session.Command{
			{Kind: session.Prompt, Text: "Hello", Chat: chat},
			{Kind: session.Prompt, Text: "And then?", Chat: chat},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
}
