package analyze

import (
	"fmt"

	"gpuscope/trace"
)

// ClockAt says how fast the GPU's clock ran at a step, by its canary, or at the last step before it of which
// that is known: "clk 1.00 ok (s120)". It is "" where no canary ran.
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
