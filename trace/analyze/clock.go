package analyze

import (
	"fmt"

	"gpuscope/trace"
)

// ClockAt describes the speed of the GPU clock at a step: "clk 1.00 ok (s120)". If the canary kernel did
// not run at the step, ClockAt uses the last earlier step in which the canary ran, and names this step.
// ClockAt returns "" if no canary ran.
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
