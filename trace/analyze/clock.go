package analyze

import (
	"fmt"

	"gpuscope/trace"
)

// ClockAt returns the speed of the GPU clock at a step as text, such as "clk 1.00 ok (s120)". The canary
// kernel measured the speed in this step, or in the last earlier step in which the canary ran. The text names
// that step. If the canary never ran up to this step, ClockAt returns "".
func (x *Index) ClockAt(step int) string {
	if x.Trace.Device.Software() {
		return ""
	}
	for i := step; i >= 0; i-- {
		s := &x.Trace.Steps[i]
		speed := s.Canary
		if speed <= 0 && s.Whole != nil {
			speed = s.Whole.Canary
		}
		if speed <= 0 {
			continue
		}
		text := fmt.Sprintf("clk %.2f", speed)
		switch {
		case speed < 1-trace.ClockMoved:
			text += " slow"
		case speed > 1+trace.ClockMoved:
			text += " fast"
		default:
			text += " ok"
		}
		if i != step {
			text += fmt.Sprintf(" (s%d)", s.Index)
		}
		return text
	}
	return ""
}
