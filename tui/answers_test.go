package tui

import (
	"testing"

	"gpuscope/session"
	"gpuscope/trace"
)

// Replies and events are sent separately. If the reply to a verification arrives before the event with the
// verdict, the screen shows the verdict when the event is there, and never the verdict of an earlier one.
func TestVerdictWaitsForItsEvent(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40)
	event := func(text string) eventsMsg {
		e := &trace.Event{Step: 3, Kind: string(session.Verify), Text: text}
		return eventsMsg{{Records: []trace.Record{{Event: e}}}}
	}
	begin := func(id int) {
		d.app.job = &job{
			id: id, command: session.Command{Kind: session.Verify}, events: len(d.app.mirror.Trace.Events),
		}
	}
	results := func(want ...string) {
		t.Helper()
		var got []string
		for _, r := range d.app.results {
			got = append(got, r.text)
		}
		if len(got) != len(want) || len(got) > 0 && got[len(got)-1] != want[len(want)-1] {
			t.Errorf("results %q, want %q", got, want)
		}
	}
	begin(901)
	d.update(doneMsg{id: 901})
	results()
	d.update(event("first"))
	results("✓ first")
	begin(902)
	d.update(doneMsg{id: 902})
	results("✓ first")
	d.update(event("second"))
	results("✓ first", "✓ second")
	begin(903) // the event comes before the reply
	d.update(event("third"))
	d.update(doneMsg{id: 903})
	results("✓ first", "✓ second", "✓ third")
}
