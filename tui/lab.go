package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// The kernel lab on the screen. A kernel's text is written to a file and edited; whenever the file changes,
// here or in another editor, the text runs in turns with the kernel, and what came of it lies over the view.

// lab is what is known of the texts that a person changes.
type lab struct {
	dir   string            // where their files are, "" before there is one
	own   map[string]string // by file: the kernel's own text
	look  chan struct{}     // wakes who watches it
	on    map[string]labStand
	tried map[string]*attempt // by kernel
	last  string              // the kernel that was tried last
	over  *overlay            // what came of it
}

// labStand is a dispatch of a step, on whose inputs a kernel is tried.
type labStand struct {
	dispatch trace.DispatchID
	step     int // its index in the trace
}

// attempt is the newest text of a kernel and what came of it: tried or err, neither before it was run.
type attempt struct {
	text   string
	tried  *session.Tried
	err    error
	warned bool     // somebody was told what is wrong with it
	before *attempt // the newest one before it that ran, nil for none
}

// ran is the newest text that ran, nil where none did.
func (t *attempt) ran() *attempt {
	if t == nil || t.tried != nil {
		return t
	}
	return t.before
}

// Messages of the lab: a file has another text, the editor has ended.
type (
	changedMsg struct {
		kernel, text string
		err          error // why the file cannot be read
	}
	editedMsg struct {
		kernel, path string
		err          error
	}
)

// begins watches the folder that was given, where one was. What is in it is in force already.
func (l *lab) begins(a *App) {
	if l.dir == "" && a.opts.Shaders != "" && !a.isTrace {
		l.watch(a, a.opts.Shaders)
	}
}

func (l *lab) watch(a *App, dir string) {
	l.dir, l.look = dir, make(chan struct{}, 1)
	l.on, l.tried, l.own = map[string]labStand{}, map[string]*attempt{}, map[string]string{}
	a.runner.Start(func(ctx context.Context) {
		watchTexts(ctx, dir, l.look, func(m changedMsg) { a.runner.Send(m) })
	})
}

// fileText is the kernel's own text as its file has it.
func fileText(k *trace.Kernel) string { return session.KernelText(k.Name, k.Constants, k.Source) }

// editKernel opens the text of the selected dispatch's kernel in the person's editor. Where no model runs, or
// the trace has no texts, it shows what there is.
func (a *App) editKernel() {
	l := a.view().Launch()
	if l == nil {
		a.remark("select a dispatch first")
		return
	}
	if needsRun(a) != "" {
		a.look(view.SourceOf(l.Plan.Kernel, l.Kernel))
		return
	}
	k := command.Own(a.index, l.Plan.Kernel)
	if k == nil || k.Source == "" {
		a.look(view.SourceOf(l.Plan.Kernel, l.Kernel))
		return
	}
	at := labStand{l.ID, a.index.Trace.Steps[l.Step].Index}
	dir, opts := a.lab.dir, a.opts
	a.jobs.Start(func(context.Context) func() {
		var path string
		var err error
		if dir == "" {
			dir, err = labFolder(&opts)
		}
		if err == nil {
			path, err = writeText(dir, k.Name, fileText(k))
		}
		return func() {
			if a.jobs.Open--; err != nil {
				a.fail(nil, fmt.Errorf("edit %s: %w", k.Name, err))
				return
			}
			if a.lab.dir == "" {
				a.lab.watch(a, dir)
			}
			a.lab.on[k.Name], a.lab.own[path] = at, fileText(k)
			a.openEditor(k.Name, path)
		}
	})
}

// openEditor gives the terminal to the editor until it ends. A run pauses: nobody would see its steps.
func (a *App) openEditor(kernel, path string) {
	cmd, err := editorOf(path, a.opts.editor, a.opts.Input, a.opts.output())
	if err != nil {
		a.fail(nil, err)
		return
	}
	if a.job != nil && a.job.command.Kind == session.Run {
		a.stop()
	}
	a.handOver(cmd, func(err error) any { return editedMsg{kernel, path, err} })
}

// closedEditor looks at what the editor left.
func (a *App) closedEditor(m editedMsg) {
	a.takeMouse()
	if m.err != nil { // nobody knows whether it was edited
		a.fail(nil, fmt.Errorf("the editor: %w", m.err))
	} else {
		a.say("edited in " + m.path)
	}
	a.jobs.Start(func(context.Context) func() {
		text, err := session.ReadKernelText(m.path)
		return func() {
			if a.jobs.Open--; err != nil {
				a.fail(nil, err)
				return
			}
			switch k := a.index.Kernel(m.kernel); {
			case needsDevice(a) != "" && k != nil && text != fileText(k):
				a.say(command.Keyed("{restart}, then {WGSL} tries what was edited in ") + m.path)
			case !a.changedText(m.kernel, text) && m.err == nil:
				a.showTried(m.kernel)
			}
		}
	})
}

// changedText has a text tried that is new, and says whether it is. The kernel's own text takes the place of
// another; before the first step there is nothing to try a text on, and one of the folder that was given is
// put in force.
func (a *App) changedText(kernel, text string) bool {
	if needsDevice(a) != "" {
		return false
	}
	k, was := a.index.Kernel(kernel), a.lab.tried[kernel]
	e := &session.KernelEdit{Kernel: kernel, Text: text}
	switch {
	case k == nil, was != nil && was.text == text:
		return false
	case text == fileText(k):
		if delete(a.lab.tried, kernel); a.inPlace(kernel) == "" {
			return false
		}
		e.Text = ""
		a.command(session.Command{Kind: session.Kernel, Edit: e})
		return true
	}
	a.lab.tried[kernel] = &attempt{text: text, before: was.ran()}
	c := session.Command{Kind: session.Lab, Edit: e}
	if needsStep(a) != "" {
		if c.Kind = session.Kernel; a.opts.Shaders == "" {
			return false
		}
	}
	if at, ok := a.lab.on[kernel]; ok && a.standsOn(at.step) {
		c.Edit.Dispatch = &at.dispatch
		if at.step != a.mirror.State.Step {
			c.Step = &at.step
		}
	}
	a.command(c)
	return true
}

// standsOn says whether a step is one of the text, which can be run again.
func (a *App) standsOn(step int) bool {
	is := func(t session.Turn) bool { return t.Step == step }
	return slices.ContainsFunc(a.mirror.Left().Turns, is)
}

// triedText takes in what came of a text. One of the folder that was given is in force from now on, where
// nothing is wrong with it.
func (a *App) triedText(c session.Command, m doneMsg) {
	t := a.lab.tried[c.Edit.Kernel]
	if t == nil || t.text != c.Edit.Text {
		return
	}
	if errors.Is(m.err, context.Canceled) {
		if a.lab.tried[c.Edit.Kernel] = t.before; t.before == nil { // it can be tried again
			delete(a.lab.tried, c.Edit.Kernel)
		}
		return
	}
	t.tried, t.err = m.reply.Tried, m.err
	a.showTried(c.Edit.Kernel)
	if t.err == nil && t.tried.Wrong() == "" && a.opts.Shaders != "" && a.queued == nil {
		a.queued = &session.Command{Kind: session.Kernel, Edit: c.Edit}
	}
}

// showTried lays over the view what came of a kernel's newest text.
func (a *App) showTried(kernel string) {
	t := a.lab.tried[kernel]
	switch {
	case t == nil:
		a.remark(kernel + session.KernelSuffix + " is the kernel's own text: nothing to try")
		return
	case t.err == nil && t.tried == nil:
		return // it is on its way
	case t.err != nil:
		a.log.Add("error", t.err.Error())
		a.over = overlayOf(view.Page{
			Title: kernel + " is not changed", Broken: widget.WrapIndented,
			Lines: append(strings.Split(t.err.Error(), "\n"), a.keepText(kernel, t.before)...),
		})
	default:
		next := command.Keyed("{use text} has the steps to come run it; {WGSL} on the dispatch edits it further.")
		if a.opts.Shaders != "" && t.tried.Wrong() == "" {
			next = command.Keyed("The steps to come run it; {WGSL} on the dispatch edits it further.")
		}
		lines := append(command.TriedLines(a.index, t.tried), "", next)
		a.over = overlayOf(view.Page{Title: t.tried.Name, Lines: lines, Broken: view.WrapHanging})
	}
	a.lab.last, a.lab.over = kernel, a.over
}

// keepText keeps a text that ran beside the file that has another by now, and says where; nil for no text.
func (a *App) keepText(kernel string, t *attempt) []string {
	if t == nil {
		return nil
	}
	path := filepath.Join(a.lab.dir, kernel+session.KernelSuffix+".last")
	a.later("text", "keep "+path, func(context.Context) (string, error) {
		return "kept " + path, os.WriteFile(path, []byte(t.text), 0o600)
	})
	said := command.Keyed("{use text} has the steps to come run the text before it, ") + t.tried.Name
	if t.tried.Name == a.inPlace(kernel) {
		said = "The text before it stays in force, " + t.tried.Name
	}
	return []string{"", said + "; it is in " + path}
}

// labKernel is the kernel that is spoken of: of what lies over the view, or of the selected dispatch.
func (a *App) labKernel() string {
	if a.over != nil && a.over == a.lab.over {
		return a.lab.last
	}
	if l := a.view().Launch(); l != nil {
		if k := command.Own(a.index, l.Plan.Kernel); k != nil {
			return k.Name
		}
	}
	return ""
}

// inPlace is the name of what runs in place of a kernel, "" for itself.
func (a *App) inPlace(kernel string) string {
	for _, name := range a.mirror.State.Edited {
		if strings.HasPrefix(name, kernel+"+") {
			return name
		}
	}
	return ""
}

// cannotUse says why no text can be put in a kernel's place, or taken from there.
func cannotUse(a *App) string {
	if why := needsDevice(a); why != "" {
		return why
	}
	kernel := a.labKernel()
	if kernel == "" {
		return "select a dispatch first"
	}
	if a.inPlace(kernel) == "" && a.lab.tried[kernel].ran() == nil {
		return kernel + command.Keyed(" has no other text that runs; {WGSL} edits it")
	}
	return ""
}

// unused is the newest text of a kernel that ran, where it is not in force; else nil.
func (a *App) unused(kernel string) *attempt {
	if t := a.lab.tried[kernel].ran(); t != nil && t.tried.Name != a.inPlace(kernel) {
		return t
	}
	return nil
}

// usedNext says what useText puts in force.
func (a *App) usedNext() string {
	if a.unused(a.labKernel()) != nil {
		return "use it"
	}
	return "use the kernel's own"
}

// useText has the steps to come run the newest text of a kernel that ran, or where they do, the kernel's own.
// Of a text that is wrong it says so the first time.
func (a *App) useText() {
	kernel := a.labKernel()
	e := &session.KernelEdit{Kernel: kernel}
	if t := a.unused(kernel); t != nil {
		if why := t.tried.Wrong(); why != "" && !t.warned {
			t.warned = true
			a.say(fmt.Sprintf(command.Keyed("%s %s: %s; {use text} again has the steps to come run it all the same"),
				widget.MarkFail, t.tried.Name, why))
			return
		}
		e.Text = t.text
	}
	a.closeOverlay()
	a.command(session.Command{Kind: session.Kernel, Edit: e})
}

// usedText says what runs from now on.
func (a *App) usedText(c session.Command) {
	name := c.Edit.Kernel + " itself"
	if t := a.lab.tried[c.Edit.Kernel]; c.Edit.Text != "" {
		if name = c.Edit.Kernel + session.KernelSuffix; t.ran() != nil && t.ran().text == c.Edit.Text {
			name = t.ran().tried.Name
		}
	}
	a.show(name + " runs from the next step on") // the log has the event
}
