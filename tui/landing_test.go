package tui

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
)

// The program starts in Step: the text and the sentences about the step are above the chart. A hint says what
// to press next, until this was pressed. The help brings the hint back.
func TestTheProgramStartsWithTheAnswers(t *testing.T) {
	t.Parallel()
	x := start(t, context.Background(), opens(tuitest.Script{}), Options{Prompt: "once"})
	x.sees("[1 Step]", "[PAUSED]", "Reading 42 tokens took", "Next: s generates").press("s")
	x.sees("This token took", "Next: 2 shows").press("2").sees("[2 Dispatches]").press("1")
	x.sees("[1 Step]", "Next: H lists").press("H").sees("How do I").press(escape).misses("How do I").misses("Next: ")
	x.press("?").sees("Help: Step").press(escape).sees("Next: s generates").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("1")
		lines := strings.Split(d.screen(), "\n")
		order := []string{" mat", "This token took", "bottleneck", "│"}
		at := 4
		for _, want := range order {
			for at < len(lines) && !strings.Contains(lines[at], want) {
				at++
			}
		}
		if at == len(lines) {
			t.Errorf("%v: not in this order: %q\n%s", size, order, d.screen())
		}
	}
}

// The help explains each word in the three lines at the top, except names and the words of the tabs.
func TestWordsOfTheTopAreInTheHelp(t *testing.T) {
	t.Parallel()
	var known strings.Builder
	for _, list := range [][][2]string{command.Top, command.Terms, command.Signs} {
		for _, row := range list {
			known.WriteString(" " + row[0] + " " + row[1])
		}
	}
	explained := strings.ToLower(known.String())
	word := regexp.MustCompile(`[a-zA-Z]{3,}`)
	names := regexp.MustCompile(`gpuscope|Llama-3.2-1B-Q4_0.gguf|NVIDIA H200 vulkan|"[^"]*"|` +
		`[0-9] [A-Z][a-z]+`)
	for _, d := range []*driver{
		drive(t, 200, 60, llama, nil, Options{}), drive(t, 200, 60, llama, nil, Options{}).press("v"),
		live(t, 200, 60), live(t, 200, 60).press("S"), live(t, 200, 60).press("v"),
		live(t, 200, 60).press("c"),
	} {
		top := strings.Join(strings.Split(d.screen(), "\n")[:3], "\n")
		for _, w := range word.FindAllString(names.ReplaceAllString(top, ""), -1) {
			if !strings.Contains(explained, strings.ToLower(w)) {
				t.Errorf("the help does not explain %q in\n%s", w, top)
			}
		}
	}
}
