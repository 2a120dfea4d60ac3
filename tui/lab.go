package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// Parts of notes, with which the tests recognize them on a screen.
const (
	originalSource = " has the original source: nothing to try"
	usedFromNext   = " runs from the next step on"
)

// lab is what is known of the texts that a person changes.
type lab struct {
	*pilot
	*overlays
	handOver func(cmd *exec.Cmd, ended func(error) any) // gives the terminal to a program

	dir    string            // where their files are, "" before there is one
	own    map[string]string // by file: the kernel's own text
	wake   chan struct{}     // wakes who watches it
	on     map[string]labStand
	tried  map[string]*attempt // by kernel
	newest string              // the kernel that was tried last
	shown  *overlay            // what came of it
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
func (l *lab) begins() {
	if l.dir == "" && l.opts.Shaders != "" && !l.isTrace {
		l.watch(l.opts.Shaders)
	}
}

func (l *lab) watch(dir string) {
	l.dir, l.wake = dir, make(chan struct{}, 1)
	l.on, l.tried, l.own = map[string]labStand{}, map[string]*attempt{}, map[string]string{}
	run := l.jobs.Runner
	run.Start(func(ctx context.Context) {
		watchTexts(ctx, dir, l.wake, func(m changedMsg) { run.Send(m) })
	})
}

// fileText is the kernel's own text as its file has it.
func fileText(k *trace.Kernel) string { return session.KernelText(k.Name, k.Constants, k.Source) }

// editKernel opens the text of the selected dispatch's kernel in the person's editor. Where no model runs, or
// the trace has no texts, it shows what there is.
func (l *lab) editKernel() {
	under := l.view().Launch()
	if under == nil {
		l.remark("select a dispatch first")
		return
	}
	if l.needsRun() != "" {
		l.look(view.SourceOf(under.Plan.Kernel, under.Kernel))
		return
	}
	k := command.Own(l.index, under.Plan.Kernel)
	if k == nil || k.Source == "" {
		l.look(view.SourceOf(under.Plan.Kernel, under.Kernel))
		return
	}
	at := labStand{under.ID, l.index.Trace.Steps[under.Step].Index}
	dir, opts := l.dir, *l.opts
	l.jobs.Start(func(context.Context) func() {
		var path string
		var err error
		if dir == "" {
			dir, err = labFolder(&opts)
		}
		if err == nil {
			path, err = writeText(dir, k.Name, fileText(k))
		}
		return func() {
			if l.jobs.Open--; err != nil {
				l.fail(nil, fmt.Errorf("edit %s: %w", k.Name, err))
				return
			}
			if l.dir == "" {
				l.watch(dir)
			}
			l.on[k.Name], l.own[path] = at, fileText(k)
			l.openEditor(k.Name, path)
		}
	})
}

// openEditor gives the terminal to the editor until it ends. A run pauses: nobody would see its steps.
func (l *lab) openEditor(kernel, path string) {
	cmd, err := editorOf(path, l.opts.editor, l.opts.Input, l.opts.output())
	if err != nil {
		l.fail(nil, err)
		return
	}
	if l.job != nil && l.job.command.Kind == session.Run {
		l.stop()
	}
	l.handOver(cmd, func(err error) any { return editedMsg{kernel, path, err} })
}

// closedEditor looks at what the editor left.
func (l *lab) closedEditor(m editedMsg) {
	if m.err != nil { // nobody knows whether it was edited
		l.fail(nil, fmt.Errorf("editor: %w", m.err))
	} else {
		l.say("source saved in " + m.path)
	}
	l.jobs.Start(func(context.Context) func() {
		text, err := session.ReadKernelText(m.path)
		return func() {
			if l.jobs.Open--; err != nil {
				l.fail(nil, err)
				return
			}
			switch k := l.index.Kernel(m.kernel); {
			case l.needsDevice() != "" && k != nil && text != fileText(k):
				l.say(command.Keyed("press {restart}, then {WGSL} to try the source in ") + m.path)
			case !l.changedText(m.kernel, text) && m.err == nil:
				l.showTried(m.kernel)
			}
		}
	})
}

// changedText has a text tried that is new, and says whether it is. The kernel's own text takes the place of
// another; before the first step there is nothing to try a text on, and one of the folder that was given is
// put in force.
func (l *lab) changedText(kernel, text string) bool {
	if l.needsDevice() != "" {
		return false
	}
	k, was := l.index.Kernel(kernel), l.tried[kernel]
	e := &session.KernelEdit{Kernel: kernel, Text: text}
	switch {
	case k == nil, was != nil && was.text == text:
		return false
	case text == fileText(k):
		if delete(l.tried, kernel); l.inPlace(kernel) == "" {
			return false
		}
		e.Text = ""
		l.command(session.Command{Kind: session.Kernel, Edit: e})
		return true
	}
	l.tried[kernel] = &attempt{text: text, before: was.ran()}
	c := session.Command{Kind: session.Lab, Edit: e}
	if l.needsStep() != "" {
		if c.Kind = session.Kernel; l.opts.Shaders == "" {
			return false
		}
	}
	if at, ok := l.on[kernel]; ok && l.standsOn(at.step) {
		c.Edit.Dispatch = &at.dispatch
		if at.step != l.mirror.State.Step {
			c.Step = &at.step
		}
	}
	l.command(c)
	return true
}

// standsOn says whether a step is one of the text, which can be run again.
func (l *lab) standsOn(step int) bool {
	is := func(t session.Turn) bool { return t.Step == step }
	return slices.ContainsFunc(l.mirror.Left().Turns, is)
}

// triedText takes in what came of a text. One of the folder that was given is in force from now on, where
// nothing is wrong with it.
func (l *lab) triedText(c session.Command, m doneMsg) {
	t := l.tried[c.Edit.Kernel]
	if t == nil || t.text != c.Edit.Text {
		return
	}
	if errors.Is(m.err, context.Canceled) {
		if l.tried[c.Edit.Kernel] = t.before; t.before == nil { // it can be tried again
			delete(l.tried, c.Edit.Kernel)
		}
		return
	}
	t.tried, t.err = m.reply.Tried, m.err
	l.showTried(c.Edit.Kernel)
	if t.err == nil && t.tried.Wrong() == "" && l.opts.Shaders != "" && l.queued == nil {
		l.queued = &session.Command{Kind: session.Kernel, Edit: c.Edit}
	}
}

// showTried lays over the view what came of a kernel's newest text.
func (l *lab) showTried(kernel string) {
	t := l.tried[kernel]
	switch {
	case t == nil:
		l.remark(kernel + session.KernelSuffix + originalSource)
		return
	case t.err == nil && t.tried == nil:
		return // it is on its way
	case t.err != nil:
		l.log.Add("error", t.err.Error())
		l.over = overlayOf(view.Page{
			Title: kernel + " not changed", Broken: widget.WrapIndented,
			Lines: append(strings.Split(t.err.Error(), "\n"), l.keepText(kernel, t.before)...),
		})
	default:
		next := command.Keyed("{use text} uses it from the next step on; {WGSL} on the dispatch edits it further.")
		if l.opts.Shaders != "" && t.tried.Wrong() == "" {
			next = command.Keyed("It is used from the next step on; {WGSL} on the dispatch edits it further.")
		}
		lines := append(command.TriedLines(l.index, t.tried), "", next)
		l.over = overlayOf(view.Page{Title: t.tried.Name, Lines: lines, Broken: view.WrapHanging})
	}
	l.newest, l.shown = kernel, l.over
}

// keepText keeps a text that ran beside the file that has another by now, and says where; nil for no text.
func (l *lab) keepText(kernel string, t *attempt) []string {
	if t == nil {
		return nil
	}
	path := filepath.Join(l.dir, kernel+session.KernelSuffix+".last")
	l.later("text", "keep "+path, func(context.Context) (string, error) {
		return "kept " + path, os.WriteFile(path, []byte(t.text), 0o600)
	})
	said := command.Keyed("{use text} uses the previous source from the next step on: ") + t.tried.Name
	if t.tried.Name == l.inPlace(kernel) {
		said = "The previous source is still used: " + t.tried.Name
	}
	return []string{"", said + "; it is in " + path}
}

// labKernel is the kernel that is spoken of: of what lies over the view, or of the selected dispatch.
func (l *lab) labKernel() string {
	if l.over != nil && l.over == l.shown {
		return l.newest
	}
	if under := l.view().Launch(); under != nil {
		if k := command.Own(l.index, under.Plan.Kernel); k != nil {
			return k.Name
		}
	}
	return ""
}

// inPlace is the name of what runs in place of a kernel, "" for itself.
func (l *lab) inPlace(kernel string) string {
	for _, name := range l.mirror.State.Edited {
		if strings.HasPrefix(name, kernel+"+") {
			return name
		}
	}
	return ""
}

// cannotUse says why no text can be put in a kernel's place, or taken from there.
func (l *lab) cannotUse() string {
	if why := l.needsDevice(); why != "" {
		return why
	}
	kernel := l.labKernel()
	if kernel == "" {
		return "select a dispatch first"
	}
	if l.inPlace(kernel) == "" && l.tried[kernel].ran() == nil {
		return kernel + command.Keyed(" has no edited source that compiles; {WGSL} edits it")
	}
	return ""
}

// unused is the newest text of a kernel that ran, where it is not in force; else nil.
func (l *lab) unused(kernel string) *attempt {
	if t := l.tried[kernel].ran(); t != nil && t.tried.Name != l.inPlace(kernel) {
		return t
	}
	return nil
}

// usedNext says what useText puts in force.
func (l *lab) usedNext() string {
	if l.unused(l.labKernel()) != nil {
		return "use it"
	}
	return "use the original"
}

// useText has the steps to come run the newest text of a kernel that ran, or where they do, the kernel's own.
// Of a text that is wrong it says so the first time.
func (l *lab) useText() {
	kernel := l.labKernel()
	e := &session.KernelEdit{Kernel: kernel}
	if t := l.unused(kernel); t != nil {
		if why := t.tried.Wrong(); why != "" && !t.warned {
			t.warned = true
			l.say(fmt.Sprintf(command.Keyed("%s %s: %s; press {use text} again to use it anyway"),
				widget.MarkFail, t.tried.Name, why))
			return
		}
		e.Text = t.text
	}
	l.closeOverlay()
	l.command(session.Command{Kind: session.Kernel, Edit: e})
}

// usedText says what runs from now on.
func (l *lab) usedText(c session.Command) {
	name := c.Edit.Kernel + " itself"
	if t := l.tried[c.Edit.Kernel]; c.Edit.Text != "" {
		if name = c.Edit.Kernel + session.KernelSuffix; t.ran() != nil && t.ran().text == c.Edit.Text {
			name = t.ran().tried.Name
		}
	}
	l.show(name + usedFromNext) // the log has the event
}
