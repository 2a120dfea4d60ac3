package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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
	if said := a.lastSaid(w-4, h-len(lines)-1); len(said) > 0 {
		lines = append(lines, "")
		for _, l := range said {
			lines = append(lines, a.theme.put(dim, "  "+l))
		}
	}
	return lines
}

// lastSaid is the end of the log in at most h lines of w cells: whole messages, where the last has room, and
// none that answers a key.
func (a *App) lastSaid(w, h int) []string {
	if h <= 0 {
		return nil
	}
	var lines []string
	log, _ := a.log.snapshot()
	for _, l := range slices.Backward(log) {
		broken := wrapText(l.Text, w)
		switch {
		case l.Level == levelKey:
			continue
		case len(lines) == 0:
			lines = shortened(broken, h, w, keyed(" … (in the log, {Log})"))
		case len(lines)+len(broken) > h:
			return lines
		default:
			lines = append(broken, lines...)
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
