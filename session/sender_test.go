package session

import (
	"slices"
	"testing"
	"testing/synctest"
)

// Events of a step wait until the step's times are known, and are then sent in one batch, in order. Sending
// the batch does not wait for a slow reader.
func TestEventsThatWereHeldGoAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, settled := NewStream(make(chan struct{}), 0), false
		sender := NewSender(stream, func() bool { return settled })
		send := func(n int) {
			sender.Send(func() Event { return Event{Progress: &Progress{Done: n}} })
		}
		const held = 5 * maxLag
		for i := range held {
			send(i)
		}
		synctest.Wait()
		if len(sender.todo) > 0 {
			t.Error("events were sent before their steps settled")
		}
		settled = true
		done := false
		go func() {
			send(held)
			done = true
			sender.End()
		}()
		if synctest.Wait(); !done {
			t.Error("the step that settled the events waits for the reader")
		}
		var got, want []int
		for e := range stream.Events() {
			got, want = append(got, e.Progress.Done), append(want, len(want))
		}
		if len(got) != held+1 || !slices.Equal(got, want) {
			t.Errorf("received %v", got)
		}
	})
}
