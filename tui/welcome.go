package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// welcome is the screen before the first step: what is being opened, what went wrong, or what is open and how
// to begin.
func (a *App) welcome(w, h int) []string {
	lines := []string{""}
	say := func(p paint, format string, args ...any) {
		for _, l := range wrapText(fmt.Sprintf(format, args...), w-4) {
			lines = append(lines, a.theme.put(p, "  "+l))
		}
	}
	switch t := a.mirror.Trace; {
	case t == nil && a.lost:
		say(strong, "%s", keyed("The engine went before the model was open. {restart} starts it again, {quit} leaves."))
	case t == nil:
		say(strong, "Opening the model")
		lines = append(lines, "")
		say(plain, "%s", a.progressBar(w-4))
	default:
		for _, s := range about(t) {
			say(plain, "%s", s)
		}
		if c := a.mirror.State.Context; c > 0 {
			say(plain, "context %s tokens, at most %s in a step", count(c), count(a.mirror.State.MaxChunk))
		}
		lines = append(lines, "")
		switch {
		case a.job != nil:
			say(strong, "%s …", cmp.Or(busyWith[a.job.command.Kind], string(a.job.command.Kind)))
		case a.isTrace:
			say(strong, "%s", keyed("The trace has no steps. {Graph} shows what would run."))
		case len(a.mirror.Text.Prompt) > 0:
			say(strong, "%s", keyed("Before the first step. Press {token} to read the prompt again, {prompt} to type another."))
		case len(t.Steps) > 0:
			say(strong, "%s", keyed("No text. Press {prompt} and type a prompt."))
		default:
			say(strong, "%s", noStep())
		}
		if n := len(t.Steps); n > 0 && a.job == nil {
			say(plain, keyed("%s recorded: {step before} shows the first, {export} exports all"), plural(n, "step"))
		}
	}
	if log, _ := a.log.snapshot(); len(log) > 0 && len(lines)+3 < h {
		lines = append(lines, "")
		for _, l := range log[max(0, len(log)-(h-len(lines))):] {
			lines = append(lines, a.theme.put(dim, "  "+cut(printable.Clean(l.Text), w-4)))
		}
	}
	return lines
}

// progressBar says how far opening has come.
func (a *App) progressBar(w int) string {
	p := a.mirror.Progress
	phase := p.Phase
	if phase == "" {
		phase = "starting"
	}
	if p.Total <= 0 {
		return phase + " …"
	}
	amount := p.Amount()
	cells := clamp(w-22-max(12, len(amount)), 1, 40)
	done := clamp(p.Done*cells/p.Total, 0, cells)
	return fmt.Sprintf("%s %s%s %s", fit(phase, 20), strings.Repeat("█", done),
		strings.Repeat("░", cells-done), amount)
}

// about says what a model is.
func about(t *trace.Trace) []string {
	m, g := &t.Model, &t.Graph
	parameters := ""
	if m.Parameters > 0 {
		parameters = fmt.Sprintf("%.1f M parameters", float64(m.Parameters)/1e6)
	}
	layers := ""
	if m.Layers > 0 {
		layers = plural(m.Layers, "layer")
	}
	return []string{
		joined(" · ", filepath.Base(m.Name), m.Architecture, parameters, m.Quantization, layers),
		joined(" · ", plural(len(g.Ops), "operator"), plural(len(g.Dispatches), "dispatch")+" at most",
			plural(len(g.Kernels), "kernel")),
	}
}
