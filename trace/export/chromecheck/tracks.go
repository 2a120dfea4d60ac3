package chromecheck

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
)

// slice is an event with a duration, in ns.
type slice struct {
	from, to int64
	event    int
}

// track holds the slices of a thread, and the beginnings (ph B) without an end so far.
type track struct {
	slices, open []slice
	next         int // for arrows: the first slice that starts later
}

func (t *track) add(from, to int64, event int) {
	t.slices = append(t.slices, slice{from, to, event})
}

func (c *checker) track(pid, tid int64) *track {
	t := c.threads[thread{pid, tid}]
	if t == nil {
		t = &track{}
		c.threads[thread{pid, tid}] = t
	}
	return t
}

// flowName is what the two ends of an arrow must have in common. The category and the name may be long, so
// only their hash is kept.
type flowName struct {
	id        int64
	cat, name [sha256.Size]byte
}

// flow is one end of an arrow, or a point in between.
type flow struct {
	ts    int64
	at    thread
	name  int32 // number of the flowName
	event int32
	ph    byte
}

// flow keeps one end of an arrow.
func (c *checker) flow(e *event, at thread, ts int64, ok bool) {
	id, err := strconv.ParseInt(string(e.ID), 10, 64)
	if err != nil {
		c.violate(RuleFlow, c.Events, "the id of the arrow is %s; it must be an integer", short(string(e.ID)))
		return
	}
	if e.Ph == "f" && e.BP != "e" {
		c.violate(RuleFlow, c.Events, `the end of the arrow has no "bp":"e", so it would end at the next slice`)
	}
	if !ok {
		return
	}
	n := flowName{id, hashOf(e.Cat), hashOf(e.Name)}
	if c.names == nil {
		c.names = map[flowName]int32{}
	}
	number, known := c.names[n]
	if !known {
		number = int32(len(c.names))
		c.names[n] = number
	}
	c.flows = append(c.flows, flow{ts, at, number, int32(c.Events), e.Ph[0]})
}

// hashOf returns a hash of a JSON string. If the value is not a string, hashOf returns the hash of "".
func hashOf(value json.RawMessage) [sha256.Size]byte {
	var s string
	_ = json.Unmarshal(value, &s)
	return sha256.Sum256([]byte(s))
}

// tracks checks the rules that need all events: RuleNesting and RuleFlow.
func (c *checker) tracks() {
	threads := make([]thread, 0, len(c.threads))
	for at := range c.threads {
		threads = append(threads, at)
	}
	slices.SortFunc(threads, func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid))
	})
	for _, at := range threads {
		t := c.threads[at]
		for _, s := range t.open {
			c.violate(RuleNesting, s.event, "the beginning (ph B) has no end (ph E)")
		}
		if len(t.slices) > 0 {
			c.Threads++
		}
		c.nesting(t)
		t.open = t.open[:0]
	}
	slices.SortStableFunc(c.flows, func(a, b flow) int { return cmp.Compare(a.ts, b.ts) })
	c.arrows()
}

// nesting checks that the slices of a thread are nested or apart.
func (c *checker) nesting(t *track) {
	slices.SortStableFunc(t.slices, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	var open []slice
	for _, s := range t.slices {
		for len(open) > 0 && open[len(open)-1].to < s.from {
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 {
			switch outer := open[n-1]; {
			case outer.to == s.from:
				c.violate(RuleNesting, s.event, "it starts when event %d ends; leave 1 ns between the two",
					outer.event)
			case outer.to == s.to:
				c.violate(RuleNesting, s.event, "it ends together with event %d; end the inner one 1 ns earlier",
					outer.event)
			case outer.to < s.to:
				c.violate(RuleNesting, s.event, "it overlaps event %d by %d ns; use another thread",
					outer.event, outer.to-s.from)
			}
			if outer := open[n-1]; outer.to <= s.to {
				open = open[:n-1] // so that each overlap is reported once
			}
		}
		open = append(open, s)
	}
}

// arrows checks that each arrow starts and ends, both inside a slice. The flows are sorted by time, and at
// equal times by their order in the file.
func (c *checker) arrows() {
	const (
		none = iota
		started
		ended
	)
	state := make([]byte, len(c.names))
	start := make([]int32, len(c.names))
	for _, f := range c.flows {
		if !c.inside(f) {
			c.violate(RuleFlow, int(f.event), "this end of the arrow is outside of any slice of its thread")
		}
		switch {
		case f.ph == 's' && state[f.name] == started:
			c.violate(RuleFlow, int(f.event), "an arrow with the same id, cat and name has not ended")
		case f.ph == 's':
			state[f.name], start[f.name] = started, f.event
		case state[f.name] != started:
			c.violate(RuleFlow, int(f.event), "the arrow has no earlier start (ph s)")
		case f.ph == 'f':
			state[f.name] = ended
			c.Flows++
		}
	}
	for i, s := range state {
		if s == started {
			c.violate(RuleFlow, int(start[i]), "the arrow has no end (ph f)")
		}
	}
}

// inside reports whether a slice of the thread is open at the time of a flow. It is called for the flows in
// the order of their times, after nesting has sorted the slices.
func (c *checker) inside(f flow) bool {
	t := c.threads[f.at]
	if t == nil {
		return false
	}
	for ; t.next < len(t.slices) && t.slices[t.next].from <= f.ts; t.next++ {
		t.close(t.slices[t.next].from)
		t.open = append(t.open, t.slices[t.next])
	}
	t.close(f.ts)
	return len(t.open) > 0
}

// close removes open slices that end before or at a time.
func (t *track) close(ts int64) {
	for len(t.open) > 0 && t.open[len(t.open)-1].to <= ts {
		t.open = t.open[:len(t.open)-1]
	}
}
