package tui

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

// Every name and text of this model contains terminal commands. Without colours a frame must contain no
// escape sequence at all, and it must fit the screen.
func TestModelTextCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			w, h := size[0], size[1]
			d := drive(t, w, h, tracetest.Hostile(tracetest.Llama(2, 6)), &tuitest.Script{},
				Options{Prompt: "a" + tracetest.HostileText})
			check := func(after string) {
				t.Helper()
				frame := d.app.View()
				lines := strings.Split(frame, "\n")
				if len(lines) > h {
					t.Errorf("after %q the frame has %d lines on a screen of %d", after, len(lines), h)
				}
				for _, l := range lines {
					if printable.Clean(l) != l || !utf8.ValidString(l) || widget.Width(l) > w {
						t.Fatalf("after %q a line is %q, %d cells wide", after, l, widget.Width(l))
					}
				}
			}
			check("start")
			d.app.log.Add("warn", tracetest.HostileText)
			for _, keys := range []string{
				"s", "s", "R", "2", "j", "j", "enter", "j", "w", "esc", "v", "esc", "F", "F", "F", "F",
				"g", "G", "w", "esc", "enter", "tab", "G", "tab", "/", "enter", "b", "S", "3", "j", "j",
				"w", "esc", "enter", "tab", "1", "j", "enter", "0", "?", "esc", ":", "esc", "i", "esc",
			} {
				d.press(keys)
				check(keys)
				if keys == "/" || keys == "i" {
					d.typed("x" + tracetest.HostileText)
					check(keys + " typed")
				}
			}
		})
	}
}

// A trace can claim any position. The program must not allocate memory or time in proportion to it.
func TestAPositionThatAFileClaimsCostsNothing(t *testing.T) {
	t.Parallel()
	for _, position := range []int{300_000_000, math.MaxInt - 1, math.MaxInt, -5, math.MinInt} {
		tr := tracetest.Llama(1, 5)
		for i := 2; i < len(tr.Steps); i++ {
			tr.Steps[i].Position = position
		}
		d := drive(t, 80, 24, tr, nil, Options{})
		for _, keys := range []string{"1", "left", "2", "w", "esc", "3", "0", "1"} {
			d.press(keys)
		}
		if position == 300_000_000 {
			d.reads("list")
		}
	}
}

func TestPlainModeSaysOneLineForEachEvent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	load := func(context.Context) (*trace.Trace, error) {
		return tracetest.Hostile(tracetest.Llama(1, 3)), nil
	}
	if err := ShowTrace(t.Context(), load, Options{
		Plain: true, Output: &out, Input: strings.NewReader(""),
	}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if l := strings.TrimSuffix(line, "\n"); printable.Clean(l) != l {
			t.Errorf("%q", l)
		}
	}
	said, _, _ := strings.Cut(out.String(), "Type a command")
	if n := strings.Count(said, "\n"); n != 3 {
		t.Errorf("%d lines for 3 steps:\n%s", n, &out)
	}
}

// Each view must compute widths from the cleaned text. This test covers many widths, not only random ones.
func TestEveryViewCleansTextAtEveryWidth(t *testing.T) {
	t.Chdir(t.TempDir())
	hostile := tracetest.Hostile(tracetest.Llama(2, 6))
	for _, w := range widths(60, 200, 7) {
		d := drive(t, w, 29, hostile, &tuitest.Script{}, Options{Prompt: tracetest.HostileText})
		for i := range all.Views {
			key := all.Views[i].Key
			d.touch(key)
			d.settle()
			for _, l := range strings.Split(d.app.View(), "\n") {
				if widget.Width(l) > w || printable.Clean(l) != l {
					t.Errorf("view %s at %d columns: %q of %d cells", key, w, l, widget.Width(l))
				}
			}
		}
	}
}
