package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/command"
	"gpuscope/tui/sources"
	"gpuscope/tui/tty"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// The kernel lab lets a user edit a kernel while the model runs. It writes the kernel's source to a file.
// Whenever the file changes, the lab runs the new source alternately with the original kernel, and shows the
// comparison over the view.

// These are endings of notes. Tests also use them to find the notes on the screen.
const (
	originalSource = " is unchanged: edit the source to try it"
	usedFromNext   = " is used from the next step on"
)

// lab holds the state of the kernel sources that the user edits.
type lab struct {
	*pilot
	*overlays
	handOver func(cmd *exec.Cmd, ended func(error) any) // lends the terminal to a program

	dir    string              // folder of the source files; "" until it exists
	own    map[string]string   // source that was first written to each file, by path
	wake   chan struct{}       // a value sent here makes the watcher check the files at once
	on     map[string]labStand // dispatch on which to try each kernel, by kernel name
	tried  map[string]*attempt // newest attempt of each kernel, by kernel name
	newest string              // name of the kernel that was tried last
	shown  *overlay            // overlay that shows the result of the newest attempt
}

// labStand identifies the dispatch in a step whose inputs an edited kernel is tried on.
type labStand struct {
	dispatch trace.DispatchID
	step     int // step index as recorded in the trace
}

// attempt holds one source of a kernel and the result of running it. Until the source has run, tried and err
// are both nil.
type attempt struct {
	text   string
	tried  *session.Tried
	err    error
	warned bool     // the user has already seen a warning that the result is wrong
	before *attempt // newest earlier attempt that ran, or nil
}

// ran returns the newest attempt whose source ran: t itself or an earlier attempt. It returns nil if no
// source ran.
func (t *attempt) ran() *attempt {
	if t == nil || t.tried != nil {
		return t
	}
	return t.before
}

// Messages of the lab: changedMsg reports that a source file changed, editedMsg that the editor has ended.
type (
	changedMsg struct {
		kernel, text string
		err          error // reason that the file cannot be read
	}
	editedMsg struct {
		kernel, path string
		err          error
	}
)

// begins starts to watch the folder of --shaders for changes, if the user gave one. The session has already
// loaded the sources in this folder.
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
		sources.Watch(ctx, dir, l.wake, func(kernel, text string, err error) {
			run.Send(changedMsg{kernel, text, err})
		})
	})
}

// fileText returns the original source of a kernel as it is written to the file for editing.
func fileText(k *trace.Kernel) string { return session.KernelText(k.Name, k.Constants, k.Source) }

// editKernel opens the source of the selected dispatch's kernel in the user's editor. If no model runs, or
// if the trace holds no sources, it shows the kernel without editing it.
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
	dir, cache := cmp.Or(l.dir, l.opts.Shaders), l.opts.Cache
	l.jobs.Start(func(context.Context) func() {
		var path string
		var err error
		if dir == "" {
			dir, err = sources.NewFolder(cache)
		}
		if err == nil {
			path, err = sources.Write(dir, k.Name, fileText(k))
		}
		return func() {
			if l.jobs.Open--; err != nil {
				l.fail(nil, fmt.Errorf("edit kernel %s: %w", k.Name, err))
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

// openEditor gives the terminal to the editor until the editor ends. It stops a run first, because nobody
// would see the steps of the run.
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

// closedEditor reads the file that the editor saved, and tries the source if the user has changed it.
func (l *lab) closedEditor(m editedMsg) {
	if m.err != nil { // the editor may have saved the file before it failed
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
				l.say(command.Keyed("press {restart}, then {WGSL} to try the source: ") +
					m.path)
			case !l.changedText(m.kernel, text) && m.err == nil:
				l.showTried(m.kernel)
			}
		}
	})
}

// changedText is called when the source of a kernel may have changed. It tries a new source on a dispatch. If
// the source equals the original, it restores the original kernel. Before the first step there is no dispatch
// to try a source on: changedText then uses a source of the --shaders folder without a trial, and ignores any
// other source. It returns true if it sent the session a command.
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

// standsOn reports whether a step belongs to the current text. Only steps of the current text can run again.
func (l *lab) standsOn(step int) bool {
	is := func(t session.Turn) bool { return t.Step == step }
	return slices.ContainsFunc(l.mirror.Left().Turns, is)
}

// triedText stores the result of running a source. The session uses a source of the --shaders folder from now
// on if its result is correct.
func (l *lab) triedText(c session.Command, m doneMsg) {
	t := l.tried[c.Edit.Kernel]
	if t == nil || t.text != c.Edit.Text {
		return
	}
	if errors.Is(m.err, context.Canceled) {
		if l.tried[c.Edit.Kernel] = t.before; t.before == nil { // the same source can be tried again
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

// showTried shows the result of a kernel's newest source over the view.
func (l *lab) showTried(kernel string) {
	t := l.tried[kernel]
	switch {
	case t == nil:
		l.remark(kernel + session.KernelSuffix + originalSource)
		return
	case t.err == nil && t.tried == nil:
		return // the source is still running
	case t.err != nil:
		l.log.Add("error", t.err.Error())
		l.over = overlayOf(view.Page{
			Title: kernel + " not changed", Broken: widget.WrapIndented,
			Lines: append(strings.Split(t.err.Error(), "\n"), l.keepText(kernel, t.before)...),
		})
	default:
		next := command.Keyed("Press {use text} to use the new source from the next step on. Press {WGSL} on the dispatch to edit it further.")
		if l.opts.Shaders != "" && t.tried.Wrong() == "" {
			next = command.Keyed("The new source is used from the next step on. Press {WGSL} on the dispatch to edit it further.")
		}
		lines := append(command.TriedLines(l.index, t.tried), "", next)
		l.over = overlayOf(view.Page{Title: t.tried.Name, Lines: lines, Broken: view.WrapHanging})
	}
	l.newest, l.shown = kernel, l.over
}

// keepText saves the source of attempt t in a file that ends in .last, because the kernel's file holds a
// newer source. It returns lines that tell the user the path, or nil if t is nil.
func (l *lab) keepText(kernel string, t *attempt) []string {
	if t == nil {
		return nil
	}
	path := filepath.Join(l.dir, kernel+session.KernelSuffix+".last")
	l.later("text", "keep "+path, func(context.Context) (string, error) {
		return "kept " + path, os.WriteFile(path, []byte(t.text), 0o600)
	})
	said := command.Keyed("Press {use text} to use the previous source from the next step on: ") +
		t.tried.Name
	if t.tried.Name == l.inPlace(kernel) {
		said = "The previous source is still in use: " + t.tried.Name
	}
	return []string{"", said + ", in the file " + path}
}

// labKernel returns the name of the kernel that lab commands apply to: the kernel of the shown result or, if
// no result is shown, the kernel of the selected dispatch.
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

// inPlace returns the name of the edited kernel that replaces a kernel, or "" if the original is in use.
func (l *lab) inPlace(kernel string) string {
	for _, name := range l.mirror.State.Edited {
		if strings.HasPrefix(name, kernel+"+") {
			return name
		}
	}
	return ""
}

// cannotUse returns the reason that useText cannot switch between two sources, or "" if it can.
func (l *lab) cannotUse() string {
	if why := l.needsDevice(); why != "" {
		return why
	}
	kernel := l.labKernel()
	if kernel == "" {
		return "select a dispatch first"
	}
	if l.inPlace(kernel) == "" && l.tried[kernel].ran() == nil {
		return kernel + command.Keyed(" has no edited source that compiles; press {WGSL} to edit the kernel")
	}
	return ""
}

// unused returns the newest attempt of a kernel whose source ran, or nil if the session already uses this
// source.
func (l *lab) unused(kernel string) *attempt {
	if t := l.tried[kernel].ran(); t != nil && t.tried.Name != l.inPlace(kernel) {
		return t
	}
	return nil
}

// usedNext returns the hint-line label of the command useText: which source the command would put into use.
func (l *lab) usedNext() string {
	if l.unused(l.labKernel()) != nil {
		return "use it"
	}
	return "use the original"
}

// useText switches a kernel between its original source and the newest source that ran. The switch applies
// from the next step on. If the result of the new source was wrong, the first call only warns.
func (l *lab) useText() {
	kernel := l.labKernel()
	e := &session.KernelEdit{Kernel: kernel}
	if t := l.unused(kernel); t != nil {
		if why := t.tried.Wrong(); why != "" && !t.warned {
			t.warned = true
			l.say(fmt.Sprintf(command.Keyed("%s %s: %s; press {use text} again to use this source anyway"),
				widget.MarkFail, t.tried.Name, why))
			return
		}
		e.Text = t.text
	}
	l.closeOverlay()
	l.command(session.Command{Kind: session.Kernel, Edit: e})
}

// usedText tells the user which source the kernel uses from now on.
func (l *lab) usedText(c session.Command) {
	name := c.Edit.Kernel + " itself"
	if t := l.tried[c.Edit.Kernel]; c.Edit.Text != "" {
		if name = c.Edit.Kernel + session.KernelSuffix; t.ran() != nil && t.ran().text == c.Edit.Text {
			name = t.ran().tried.Name
		}
	}
	l.show(name + usedFromNext) // the session has already logged this
}

// editorOf returns the command that opens a file in an editor. If editor is "", the user's own editor is
// chosen. The editor takes over the terminal.
func editorOf(path, editor string, in io.Reader, out io.Writer) (*exec.Cmd, error) {
	words := strings.Fields(cmp.Or(editor, os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if len(words) == 0 {
		words = []string{"vi"}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("editor %s not found: set VISUAL or EDITOR; the file is %s",
			words[0], path)
	}
	cmd := exec.Command(words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), out, out
	switch f := in.(type) {
	case nil:
		cmd.Stdin = os.Stdin
	case tty.Input: // give the editor the terminal itself, not the wrapper
		cmd.Stdin = f.File
	}
	return cmd, nil
}
