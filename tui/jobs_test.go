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
	"gpuscope/tui/widget"
)

// held lets the table of a page be made only when it is released, and counts.
type held struct {
	release   chan struct{}
	cancelled chan struct{} // of a job whose context ended before that, a word
	made      chan struct{} // of every other
}

// hold makes a page's table, one of the registry, hang.
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

func (d *driver) dispatches() *view.DispatchPage { return d.app.views[1].(*view.DispatchPage) }

func TestATableThatHangsBlocksNoKey(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2").reads("title")
	d.app.jobs.Patience = 0
	h := hold(&d.dispatches().ListPage)
	d.touch("F")
	d.sees("▾ layers 0–15").reads("title") // what was there, and that it is not what is wanted
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

// A fold that is not wanted any more is cancelled, and what comes of it is dropped.
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
		t.Errorf("%d tables were made to the end, want 1", n)
	}
	d.press("F").reads("title") // and what was there before is made again
}

// Nobody sees the steps of a fast run if each of them cancels the table of the one before.
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
		t.Errorf("%d tables were cancelled by steps that came after them", n)
	}
	close(h.release)
	d.settle()
	d.sees("Δ s1:")
	if n := len(h.made); n != 2 {
		t.Errorf("%d tables were made, want that of the first step and that of the last", n)
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
	d.press("j", "esc").reads("notice", "list") // what is there is of something else
	d.dispatches().From.Of = of
	d.press("F").reads("list", "title")
}

// The lines of the detail and the chain of reasons come from jobs too.
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
		t.Error("who goes to another view still waits for the text over the one before")
	}
}

// A key is about what the one before it has led to, and waits for that, also where both come in one read: for
// the text that opens, the rows that a filter leaves, another fold. It does not wait for long.
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

// A sort, a filter or an opened row uses the table that is there.
func TestAChoiceMakesNoTableAnew(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	h := hold(&d.dispatches().ListPage)
	close(h.release)
	d.press("o", "O", "/").typed("norm").press("enter", "h", "l", "enter")
	if n := len(h.made); n != 0 {
		t.Errorf("%d tables were made for a choice of rows", n)
	}
	if !strings.Contains(d.screen(), "filter norm:") {
		t.Error(d.screen())
	}
}

// Header and views are of one state of a run: what it brings is taken in at once, and then rests. What a
// person does shows the newest.
func TestRunResultsAppearTogether(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, &tuitest.Script{}, Options{Prompt: "Once upon a time"}).press("1")
	d.touch("space")
	var ended []any // that the run has, long before the screen has its steps
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
			case <-time.After(10 * time.Second):
				t.Fatal("the run gives no step")
			}
		}
		compute()
	}
	bring()
	d.sees("step 1 decode", "2 steps: 1 prefill")
	d.app.jobs.Rest = widget.Now().Add(time.Hour)
	bring()
	bring()
	if !d.app.jobs.Resting {
		t.Error("what waits is not looked at again")
	}
	d.sees("[RUNNING]", "step 1 (newest 3) decode", "2 steps: 1 prefill")
	d.touch("1")
	compute()
	d.sees("4 steps: 1 prefill").misses("2 steps: 1 prefill")
	bring()
	d.events()
	for _, m := range ended {
		d.update(m)
	}
	d.settle()
	d.sees("[ENDED]", "step 23 decode", "24 steps: 1 prefill")
}
