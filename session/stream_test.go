package session

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

func numbered(i int) Event { return Event{Progress: &Progress{Done: i}} }

// Nothing reads while the session closes, and later something does. The events that arrive have no gap.
func TestNoEventFollowsOneThatDidNotFit(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	s := NewStream(closing, 2)
	s.Send(numbered(0))
	s.Send(numbered(1))
	close(closing)
	s.Send(numbered(2)) // no room
	if e := <-s.Events(); e.Progress.Done != 0 {
		t.Errorf("first event is %d", e.Progress.Done)
	}
	s.Send(numbered(3)) // there is room again
	s.End()
	s.Send(numbered(4))
	want := 1
	for e := range s.Events() {
		if e.Progress.Done != want {
			t.Errorf("event %d is followed by %d", want-1, e.Progress.Done)
		}
		want++
	}
	if want != 2 {
		t.Errorf("%d events arrived, want 2", want)
	}
}

func TestAStreamThatClosesKeepsWhatFindsRoom(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	close(closing)
	s := NewStream(closing, 3)
	for i := range 3 {
		s.Send(numbered(i))
	}
	s.End()
	n := 0
	for range s.Events() {
		n++
	}
	if n != 3 {
		t.Errorf("%d of 3 events arrived", n)
	}
}

// Several goroutines wait for room when the session closes. The events of each arrive in order and without a
// gap, whichever goroutine sees the end first.
func TestSendersThatWaitLeaveNoHole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closing := make(chan struct{})
		s := NewStream(closing, 1)
		var senders sync.WaitGroup
		for k := range 3 {
			senders.Go(func() {
				for i := range 100 {
					s.Send(Event{Progress: &Progress{Phase: fmt.Sprint(k), Done: i}})
				}
			})
		}
		next := map[string]int{}
		for n := 0; ; n++ {
			e, ok := <-s.Events()
			if !ok {
				break
			}
			if e.Progress.Done != next[e.Progress.Phase] {
				t.Fatalf("sender %s: event %d, want %d next", e.Progress.Phase, e.Progress.Done,
					next[e.Progress.Phase])
			}
			next[e.Progress.Phase]++
			if n == 50 {
				close(closing)
				synctest.Wait()
			}
		}
		senders.Wait()
	})
}
