package chromecheck

import (
	"encoding/json"
	"strconv"
	"strings"
)

// event is an event as it is in the file.
type event struct {
	Ph   string          `json:"ph"`
	Name json.RawMessage `json:"name"`
	Cat  json.RawMessage `json:"cat"`
	PID  json.RawMessage `json:"pid"`
	TID  json.RawMessage `json:"tid"`
	TS   json.RawMessage `json:"ts"`
	Dur  json.RawMessage `json:"dur"`
	ID   json.RawMessage `json:"id"`
	BP   string          `json:"bp"`
	S    string          `json:"s"`
	Args json.RawMessage `json:"args"`
}

// event checks an event by itself, and keeps what is needed to check it together with others.
func (c *checker) event(e *event) {
	switch e.Ph {
	case "X", "B", "E", "i", "I", "C", "s", "t", "f", "b", "n", "e":
	case "M":
		c.metadata(e)
		return
	case "":
		c.violate(RuleMember, c.Events, "the event has no ph")
		return
	default:
		c.violate(RuleMember, c.Events, "ph %q is not supported by all viewers", short(e.Ph))
		return
	}
	pid, ok1 := c.id("pid", e.PID)
	tid, ok2 := c.id("tid", e.TID)
	ts, ok3 := c.time("ts", e.TS)
	ok := ok1 && ok2 && ok3
	if e.Ph != "E" {
		c.text("name", e.Name)
	}
	switch e.Ph {
	case "X":
		c.text("cat", e.Cat)
		dur, good := c.time("dur", e.Dur)
		if !good || !ok {
			return
		}
		if dur <= 0 {
			c.violate(RuleLength, c.Events, "the duration is %d ns; use an instant event (ph i) instead", dur)
			return
		}
		c.Slices++
		c.track(pid, tid).add(ts, ts+dur, c.Events)
	case "B", "E":
		if ok {
			c.half(e, pid, tid, ts)
		}
	case "i", "I":
		if e.S != "" && e.S != "t" && e.S != "p" && e.S != "g" {
			c.violate(RuleMember, c.Events, "the scope s is %q, not t, p or g", short(e.S))
		}
	case "C":
		c.counter(e)
	case "s", "t", "f":
		c.text("cat", e.Cat)
		c.flow(e, thread{pid, tid}, ts, ok)
	default: // asynchronous
		c.text("cat", e.Cat)
		if len(e.ID) == 0 {
			c.violate(RuleMember, c.Events, "an asynchronous event (ph %s) has no id", e.Ph)
		}
	}
}

// half checks an event that begins or ends a slice.
func (c *checker) half(e *event, pid, tid, ts int64) {
	t := c.track(pid, tid)
	if e.Ph == "B" {
		t.open = append(t.open, slice{from: ts, event: c.Events})
		c.begun++
		return
	}
	n := len(t.open)
	if n == 0 {
		c.violate(RuleNesting, c.Events, "the end (ph E) has no beginning (ph B) on its thread")
		return
	}
	b := t.open[n-1]
	t.open = t.open[:n-1]
	c.begun--
	if ts <= b.from {
		c.violate(RuleLength, c.Events, "the slice lasts %d ns; want more than 0", ts-b.from)
		return
	}
	c.Slices++
	t.add(b.from, ts, b.event)
}

// metadata checks an event that names a process or a thread.
func (c *checker) metadata(e *event) {
	var name string
	if json.Unmarshal(e.Name, &name) != nil || name == "" {
		c.violate(RuleMember, c.Events, "the event has no name")
		return
	}
	c.id("pid", e.PID)
	if strings.HasPrefix(name, "thread_") {
		c.id("tid", e.TID)
	}
}

// counter checks that a counter has values and that all of them are numbers.
func (c *checker) counter(e *event) {
	var args map[string]json.RawMessage
	if len(e.Args) == 0 || json.Unmarshal(e.Args, &args) != nil || len(args) == 0 {
		c.violate(RuleMember, c.Events, "the counter has no values in args")
		return
	}
	for key, value := range args {
		if _, err := strconv.ParseFloat(string(value), 64); err != nil {
			c.violate(RuleMember, c.Events, "the counter's value %q is not a number", short(key))
		}
	}
}

// text checks that a member is a string that is not empty.
func (c *checker) text(key string, value json.RawMessage) {
	switch {
	case len(value) == 0:
		c.violate(RuleMember, c.Events, "the event has no %s", key)
	case value[0] != '"':
		c.violate(RuleMember, c.Events, "%s is not a string", key)
	case len(value) == 2 && key == "cat":
		c.violate(RuleMember, c.Events, "%s is empty", key)
	}
}

// id returns the id of a process or a thread.
func (c *checker) id(key string, value json.RawMessage) (int64, bool) {
	if len(value) == 0 {
		c.violate(RuleMember, c.Events, "the event has no %s", key)
		return 0, false
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 1 || n > 1<<32-1 {
		c.violate(RuleID, c.Events, "%s is %s; it must be an integer from 1 to 4294967295", key,
			short(string(value)))
		return 0, false
	}
	return n, true
}

// time returns a time in ns.
func (c *checker) time(key string, value json.RawMessage) (int64, bool) {
	if len(value) == 0 {
		c.violate(RuleMember, c.Events, "the event has no %s", key)
		return 0, false
	}
	ns, problem := parseMicros(string(value))
	if problem != "" {
		c.violate(RuleTime, c.Events, "%s is %s: %s", key, short(string(value)), problem)
		return 0, false
	}
	return ns, true
}

// maxTime is the largest time in ns. Numbers in double precision are exact up to here.
const maxTime = 1<<53 - 1

// parseMicros converts a JSON number of µs to ns. If this is not possible, it returns what is wrong.
func parseMicros(text string) (ns int64, problem string) {
	if text[0] == '"' {
		return 0, "it must be a number, not a string"
	}
	whole, decimals, _ := strings.Cut(text, ".")
	if strings.ContainsAny(text, "eE") || len(decimals) > 3 {
		return 0, "it must have at most 3 decimals and no exponent"
	}
	digits := whole + decimals + "000"[len(decimals):]
	ns, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil && strings.TrimLeft(digits, "-0123456789") != "":
		return 0, "it must be a number"
	case err != nil || ns > maxTime || ns < -maxTime:
		return 0, "beyond 9007199254740.991 µs, viewers lose the ns. Write times relative to the start of the trace"
	}
	return ns, ""
}

// short returns the beginning of a text for a message.
func short(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
