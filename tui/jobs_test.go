package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gpuscope/session"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view"
	"gpuscope/tui/view/dispatch"
	"gpuscope/tui/widget"
)

// held blocks the table of a page until release is closed, and counts the jobs.
type held struct {
	release   chan struct{}
	cancelled chan struct{} // one element for each job that was cancelled while blocked
	made      chan struct{} // one element for each other job
}

// hold blocks the table of a page.
func hold(p *view.ListPage) *held {
	h := &held{make(chan struct{}), make(chan struct{}, 100), make(chan struct{}, 100)}
	of := p.From.Of
	p.From.Of = func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
		select {
		case <-h.release:
			h.made <- struct{}{}
			return of(ctx, x, o)
		case <-ctx.Done():
			h.cancelled <- struct{}{}
			return nil, ctx.Err()
		}
	}
	return h
}

func (d *driver) dispatches() *dispatch.Page { return d.app.views[1].(*dispatch.Page) }

func TestATableThatHangsBlocksNoKey(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2").reads("title")
	d.app.jobs.Patience = 0
	h := hold(&d.dispatches().ListPage)
	d.touch("F")
	d.sees("▾ layers 0–15").reads("title") // the old rows, and a title that says that new ones are computed
	for _, keys := range [][]string{{"j"}, {"o"}, {"?"}, {"esc"}, {":"}, {"esc"}, {"z"}, {"z"}, {"tab"}, {"tab"}} {
		for _, k := range keys {
			d.touch(k)
		}
		d.sees("[TRACE]")
	}
	d.touch("1")
	d.sees("[1 Step]")
	d.touch("2")
	d.touch("?")
	d.reads("overTitle")
	d.touch("esc")
	d.touch("ctrl+c")
	d.reads("bottom")
	if d.touch("ctrl+c"); !d.app.leaving {
		t.Error("ctrl+c twice does not quit")
	}
	close(h.release)
	d.settle()
	d.sees("linear_q4gsw").reads("title")
}

// The job of a grouping that is no longer wanted is cancelled, and its result is dropped.
func TestAStaleTableIsDropped(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	d.app.jobs.Patience = 0
	h := hold(&d.dispatches().ListPage)
	d.touch("F")
	d.touch("F")
	<-h.cancelled
	d.touch("F")
	<-h.cancelled
	close(h.release)
	d.settle()
	d.reads("title")
	if n := len(h.made); n != 1 {
		t.Errorf("%d tables were completed, want 1", n)
	}
	d.press("F").reads("title") // the table from before is computed again
}

// A step of a fast run must not cancel the table of the previous step, or no table would ever be shown.
func TestARunDoesNotCancelWhatItShows(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, &tuitest.Script{}, Options{Prompt: "once"}).press("2")
	h := hold(&d.dispatches().ListPage)
	d.touch("s")
	for d.app.job != nil {
		d.update(<-d.messages)
		d.events()
	}
	d.app.command(session.Command{Kind: session.Next})
	for d.app.job != nil {
		d.update(<-d.messages)
		d.events()
	}
	if n := len(h.cancelled); n != 0 {
		t.Errorf("%d tables were cancelled by later steps", n)
	}
	close(h.release)
	d.settle()
	d.sees("Δ s1:")
	if n := len(h.made); n != 2 {
		t.Errorf("%d tables were computed, want 2: of the first step and of the last", n)
	}
}

func TestATableThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	of := d.dispatches().From.Of
	d.dispatches().From.Of = func(context.Context, *analyze.Index, analyze.Options) (*table.Table, error) {
		return nil, errors.New("dispatches: the trace is odd")
	}
	d.press("F").reads("notice", "list").misses("▸ norm")
	d.press("j", "esc").reads("notice", "list") // still the error, and no rows of the old grouping
	d.dispatches().From.Of = of
	d.press("F").reads("list", "title")
}

// Jobs also compute the lines of the detail and the explanation of a grid.
func TestADetailThatHangsBlocksNoKey(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "j", "j")
	d.app.jobs.Patience = 0
	release := make(chan struct{})
	defer close(release)
	d.app.jobs.Asked++
	d.app.look(view.Text{Of: func(context.Context) (view.Page, error) {
		<-release
		return view.Page{Title: "Why", Lines: []string{"late"}}, nil
	}})
	d.touch("j")
	d.touch("3")
	d.sees("[3 Resize]").misses("late")
	if d.app.overTask.Cancel != nil {
		t.Error("after a change of view, the text over the previous view is still computed")
	}
}

// A key acts on the result of the previous key, even if both arrive in one read. It waits for a text that
// opens, for the rows of a filter, or for another grouping. It does not wait for long.
func TestKeyWaitsForThePreviousKey(t *testing.T) {
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "j")
	d.typed("w/grid").press("enter").reads("overTitle", "over").misses("filter")
	d.press("esc").typed("w/").press("esc").reads("overTitle").press("esc")
	for _, k := range []string{"/", "layers.3.attn.q", "enter", "w"} {
		d.touch(k)
	}
	d.settle()
	d.reads("overTitle").press("esc", "esc")
	d.typed("FFG") // the last dispatch, by kernel
	if got := d.row(); !strings.Contains(got, "select") {
		t.Errorf("by kernel the last row is %q", got)
	}
	h := hold(&d.dispatches().ListPage)
	d.touch("F")
	d.touch("3")
	d.misses("[3 Resize]")
	clock := widget.Now
	defer func() { widget.Now = clock }()
	widget.Now = func() time.Time { return clock().Add(d.app.jobs.Patience) }
	d.update(widget.LateMsg{})
	d.sees("[3 Resize]")
	close(h.release)
}

// Sorting, filtering and opening rows reuse the existing table.
func TestAChoiceMakesNoTableAnew(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	h := hold(&d.dispatches().ListPage)
	close(h.release)
	d.press("o", "O", "/").typed("norm").press("enter", "h", "l", "enter")
	if n := len(h.made); n != 0 {
		t.Errorf("%d tables were computed to choose rows, want 0", n)
	}
	if !strings.Contains(d.screen(), "filter norm:") {
		t.Error(d.screen())
	}
}

// The header and the views show the same state of a run. They take in new results together and then rest for
// a while. A key of the user shows the newest state at once.
func TestRunResultsAppearTogether(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, &tuitest.Script{}, Options{Prompt: "Once upon a time"}).press("1")
	d.touch("space")
	var ended []any // messages about the end of the run, held back until the screen has its steps
	compute := func() {
		for d.app.jobs.Busy > 0 {
			m := <-d.messages
			if _, ready := m.(widget.ReadyMsg); ready {
				d.update(m)
			} else {
				ended = append(ended, m)
			}
		}
	}
	bring := func() {
		t.Helper()
		for step := d.app.mirror.State.Step; d.app.mirror.State.Step == step; {
			select {
			case e := <-d.session.Events():
				d.update(eventsMsg{e})
			case <-time.After(time.Minute):
				t.Fatal("the run sent no step")
			}
		}
		compute()
	}
	bring()
	d.sees("step 1 decode", "1 decode step")
	d.app.jobs.Rest = widget.Now().Add(time.Hour)
	bring()
	bring()
	if !d.app.jobs.Resting {
		t.Error("no update is scheduled for the waiting results")
	}
	d.sees("[RUNNING]", "step 1 (newest 3) decode", "1 decode step")
	d.touch("1")
	compute()
	d.sees("4 steps: 1 prefill").misses("1 decode step")
	bring()
	d.events()
	for _, m := range ended {
		d.update(m)
	}
	d.settle()
	d.sees("[ENDED]", "step 23 decode", "24 steps: 1 prefill")
}
