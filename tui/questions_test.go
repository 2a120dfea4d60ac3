package tui

import (
	"os"
	"strings"
	"testing"
)

// The screen answers each of these questions within ten presses, starting at the first screen.
func TestAQuestionTakesTenPresses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, q := range []struct {
		question, keys string
		row            []string // texts in the selected row
		sees           []string
	}{
		{
			"which kernel of decode takes longest, over all steps?", "F F v o h g",
			[]string{"×113"},
			[]string{"by kernel", "all 23 warm decode steps", "share↓"},
		},
		{
			"what differs between prefill and decode, with old and new grids?", "V b v",
			nil,
			[]string{"Δ prefill: 291 grid, 112 route", "21→1", "sdpa.qk"},
		},
		{
			"where did a grid change while decoding?", "1 g ] ]",
			nil,
			[]string{"s23 pos 64: sdpa.split 32 → 64"},
		},
		{
			"how does this step compare with an earlier one?", "1 left left left b G 2",
			nil,
			[]string{"Δ s20:", "step 23"},
		},
		{
			"how is the table on the screen exported?", "E enter",
			nil,
			[]string{"wrote ", "dispatches-s23.csv"},
		},
	} {
		t.Run(q.question, func(t *testing.T) {
			keys := strings.Fields(q.keys)
			if len(keys) > 10 {
				t.Fatalf("%d presses", len(keys))
			}
			d := drive(t, 120, 40, llama, nil, Options{}).press(keys...).sees(q.sees...)
			for _, text := range q.row {
				if !strings.Contains(d.row(), text) {
					t.Errorf("the selected row is %q, want %s", d.row(), text)
				}
			}
		})
	}
	if list, err := os.ReadDir("."); err != nil || len(list) != 1 {
		t.Errorf("%v, %v: want only the table", list, err)
	}
}
