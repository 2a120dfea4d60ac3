package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// welcome returns the screen shown before the first step: the progress of opening, the error, or the open
// model and how to begin.
func (a *App) welcome(w, h int) []string {
	lines := []string{""}
	say := func(p widget.Paint, format string, args ...any) {
		for _, l := range widget.WrapText(fmt.Sprintf(format, args...), w-4) {
			lines = append(lines, a.theme.Put(p, "  "+l))
		}
	}
	switch t := a.mirror.Trace; {
	case t == nil && a.lost:
		say(widget.Strong, "%s", command.Keyed("The engine crashed while opening the model. Press {restart} to restart it, {quit} to quit."))
	case t == nil:
		say(widget.Strong, "Opening the model")
		lines = append(lines, "")
		say(widget.Plain, "%s", a.progressBar(w-4))
	default:
		for _, s := range about(t) {
			say(widget.Plain, "%s", s)
		}
		if c := a.mirror.State.Context; c > 0 {
			say(widget.Plain, "context %s tokens, at most %s tokens per step", widget.Count(c),
				widget.Count(a.mirror.State.MaxChunk))
		}
		lines = append(lines, "")
		switch {
		case a.job != nil && a.mirror.State.Program:
			say(widget.Strong, "executing …")
		case a.job != nil:
			kind := a.job.command.Kind
			say(widget.Strong, "%s …", cmp.Or(command.BusyWith[kind], string(kind)))
		case a.isTrace:
			say(widget.Strong, "%s", command.Keyed("The trace has no steps. Press {Graph} to see what would run."))
		case a.mirror.State.Program:
			say(widget.Strong, "%s", command.Keyed("Nothing was executed yet. Press {token} to execute the method, or {prompt} to set live dims."))
		case len(a.mirror.Text.Prompt) > 0:
			say(widget.Strong, "%s", command.Keyed("No step has run. Press {token} to read the prompt again, or {prompt} to type another prompt."))
		case len(t.Steps) > 0:
			say(widget.Strong, "%s", command.Keyed("No text yet. Press {prompt} and type a prompt."))
		default:
			say(widget.Strong, "%s", noStep())
		}
		if n := len(t.Steps); n > 0 && a.job == nil {
			say(widget.Plain, command.Keyed("%s recorded: press {previous step} to show the first step, {export} to export the trace"), widget.Plural(n, "step"))
		}
	}
	if said := a.lastSaid(w-4, h-len(lines)-1); len(said) > 0 {
		lines = append(lines, "")
		for _, l := range said {
			lines = append(lines, a.theme.Put(widget.Dim, "  "+l))
		}
	}
	return lines
}

// lastSaid returns the last messages of the log, in at most h lines of w cells. It may shorten only the
// newest message. It leaves out messages that explain why a key had no effect.
func (a *App) lastSaid(w, h int) []string {
	if h <= 0 {
		return nil
	}
	var lines []string
	log, _ := a.log.Snapshot()
	for _, l := range slices.Backward(log) {
		broken := widget.WrapText(l.Text, w)
		switch {
		case l.Level == widget.LevelKey:
			continue
		case len(lines) == 0:
			lines = widget.Shortened(broken, h, w, command.Keyed(" … (in the log, {Log})"))
		case len(lines)+len(broken) > h:
			return lines
		default:
			lines = append(broken, lines...)
		}
	}
	return lines
}

// progressBar returns the progress of opening the model.
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
	cells := widget.Clamp(w-22-max(12, len(amount)), 1, 40)
	done := widget.Clamp(p.Done*cells/p.Total, 0, cells)
	return fmt.Sprintf("%s %s%s %s", widget.Fit(phase, 20), strings.Repeat("█", done),
		strings.Repeat("░", cells-done), amount)
}

// about returns lines that describe the model.
func about(t *trace.Trace) []string {
	m, g := &t.Model, &t.Graph
	parameters := ""
	if m.Parameters > 0 {
		parameters = table.Plural(m.Parameters, "parameter")
		if m.Parameters >= 100_000 {
			parameters = fmt.Sprintf("%.1f M parameters", float64(m.Parameters)/1e6)
		}
	}
	layers := ""
	if m.Layers > 0 {
		layers = widget.Plural(m.Layers, "layer")
	}
	return []string{
		widget.Joined(" · ", filepath.Base(m.Name), m.Architecture, parameters, m.Quantization, layers),
		widget.Joined(" · ", widget.Plural(len(g.Ops), "operator"), widget.Plural(len(g.Dispatches), "dispatch")+" at most",
			widget.Plural(len(g.Kernels), "kernel")),
	}
}
