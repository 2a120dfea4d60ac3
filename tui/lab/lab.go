// Package lab is the kernel lab of the screen. It lets a user edit a kernel while the model runs. It writes
// the kernel's source to a file. Whenever the file changes, the lab runs the new source alternately with the
// original kernel, and shows the comparison over the view.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/tui/command"
	"gpuscope/tui/sources"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// These are endings of notes. Tests also use them to find the notes on the screen.
const (
	OriginalSource = " is unchanged: edit the source to try it"
	UsedFromNext   = " is used from the next step on"
)

// Host is the interface through which the lab uses the program.
type Host interface {
	view.Host
	Say(text string)    // shows a note that fades and adds it to the log
	Report(text string) // shows a result until the next key and adds it to the log
	// Announce shows a result, which the session has logged, until the next key.
	Announce(p widget.Paint, text string)
	Log(level, text string) // adds a line to the log
	Fail(err error)         // shows an error until the user dismisses it
	// Later runs f in the background and then shows the note that f returned.
	Later(kind, description string, f func(context.Context) (string, error))
	// Open shows a finished text over the view. `shown` reports whether the screen still shows this text.
	Open(p view.Page) (shown func() bool)
	// Occupied reports whether the user is reading a text over the view or is typing into an input.
	Occupied() bool
	CloseText()              // closes the text over the view
	Launch() *analyze.Launch // launch of the dispatch under the cursor, or nil
	Index() *analyze.Index   // index of the shown trace
	Mirror() *session.Mirror // state of the session
	NeedsDevice() string     // why no step can run on a GPU, or ""
	NeedsStep() string       // why there is no current step, or ""
	// Write asks for a path, suggests a name, and writes data to a new file.
	Write(label, name string, data []byte)
	StopRun()                 // stops a run in progress
	DoNext(c session.Command) // sends a command after the one that ended, unless another one waits
	// Edit lends the terminal to the user's editor. When the editor ends, the event loop receives the
	// result of `ended`.
	Edit(path string, ended func(error) any) error
}

// Options hold the settings of the lab.
type Options struct {
	// Shaders is the folder of kernel sources that the session uses; "": edited sources go to a new folder
	// in Cache. If Cache is empty too, the new folder is in the system's folder for temporary files.
	Shaders, Cache string
}

// Lab holds the state of the kernel sources that the user edits.
type Lab struct {
	host Host
	jobs *widget.Jobs
	opts Options

	dir   string              // folder of the source files; "" until it exists
	own   map[string]string   // source that was first written to each file, by path
	wake  chan struct{}       // a value sent here makes the watcher check the files at once
	on    map[string]labStand // dispatch on which to try each kernel, by kernel name
	tried map[string]*variant // variant that was tried or used last, by kernel name
	read  map[string]string   // source that was read last from the file of each kernel, by kernel name
	list  []*variant          // all variants that were tried, in order
	// version changes with every change of the list.
	version int
	subject *variant    // variant that the screen shows
	shown   func() bool // reports whether the screen still shows subject
}

// New returns a lab without sources.
func New(h Host, j *widget.Jobs, o Options) *Lab {
	return &Lab{
		host: h, jobs: j, opts: o, shown: func() bool { return false },
		on: map[string]labStand{}, tried: map[string]*variant{}, read: map[string]string{},
		own: map[string]string{},
	}
}

// labStand identifies a dispatch in a step. The lab runs an edited kernel on the inputs of this dispatch.
type labStand struct {
	dispatch trace.DispatchID
	step     int // step index as recorded in the trace
}

// Messages to the event loop: Changed reports that a source file changed, Edited that the editor has ended.
type (
	Changed struct {
		Kernel, Text string
		Err          error // reason that the file cannot be read
	}
	Edited struct {
		Kernel, Path string
		Err          error
	}
)

// Begin is called when a session opens. If the user gave a folder with --shaders, Begin starts to watch
// this folder for changes. The session has already loaded the sources in this folder.
func (l *Lab) Begin() {
	if l.dir == "" && l.opts.Shaders != "" {
		l.watch(l.opts.Shaders)
	}
}

func (l *Lab) watch(dir string) {
	l.dir, l.wake = dir, make(chan struct{}, 1)
	run := l.jobs.Runner
	run.Start(func(ctx context.Context) {
		sources.Watch(ctx, dir, l.wake, func(kernel, text string, err error) {
			run.Send(Changed{kernel, text, err})
		})
	})
}

// End is called when the program ends. It removes the sources that the user did not edit, unless they are in
// the user's own folder.
func (l *Lab) End() {
	if l.opts.Shaders == "" {
		sources.RemoveUnchanged(l.dir, l.own)
	}
}

// FileText returns the original source of a kernel as it is written to the file for editing.
func FileText(k *trace.Kernel) string { return session.KernelText(k.Name, k.Constants, k.Source) }

// Edit opens the source of the selected dispatch's kernel in the user's editor. If no model runs, or
// if the trace holds no sources, it shows the kernel without editing it.
func (l *Lab) Edit() {
	under := l.host.Launch()
	if under == nil {
		l.host.Remark("select a dispatch first")
		return
	}
	if cmp.Or(l.host.NeedsDevice(), l.host.NeedsStep()) != "" {
		l.host.Show(view.SourceOf(under.Plan.Kernel, under.Kernel))
		return
	}
	k := command.Own(l.host.Index(), under.Plan.Kernel)
	if k == nil || k.Source == "" {
		l.host.Show(view.SourceOf(under.Plan.Kernel, under.Kernel))
		return
	}
	at := labStand{under.ID, l.host.Index().Trace.Steps[under.Step].Index}
	dir, cache := cmp.Or(l.dir, l.opts.Shaders), l.opts.Cache
	l.jobs.Start(func(context.Context) func() {
		var path string
		var err error
		if dir == "" {
			dir, err = sources.NewFolder(cache)
		}
		if err == nil {
			path, err = sources.Write(dir, k.Name, FileText(k))
		}
		return func() {
			if l.jobs.Open--; err != nil {
				l.host.Fail(fmt.Errorf("edit kernel %s: %w", k.Name, err))
				return
			}
			if l.dir == "" {
				l.watch(dir)
			}
			l.on[k.Name], l.own[path] = at, FileText(k)
			l.openEditor(k.Name, path)
		}
	})
}

// openEditor gives the terminal to the editor until the editor ends. It stops a run first, because nobody
// would see the steps of the run.
func (l *Lab) openEditor(kernel, path string) {
	err := l.host.Edit(path, func(err error) any { return Edited{kernel, path, err} })
	if err != nil {
		l.host.Fail(err)
		return
	}
	l.host.StopRun()
}

// EditorClosed reads the file that the editor saved, and tries the source if the user has changed it.
func (l *Lab) EditorClosed(m Edited) {
	if m.Err != nil { // the editor may have saved the file before it failed
		l.host.Fail(fmt.Errorf("editor: %w", m.Err))
	}
	l.jobs.Start(func(context.Context) func() {
		text, err := session.ReadKernelText(m.Path)
		return func() {
			if l.jobs.Open--; err != nil {
				l.host.Fail(err)
				return
			}
			k := l.host.Index().Kernel(m.Kernel)
			changed := k != nil && text != FileText(k)
			if changed && m.Err == nil {
				l.host.Report("source saved in " + m.Path)
			}
			switch {
			case l.host.NeedsDevice() != "" && changed:
				l.host.Report(command.Keyed("press {restart}, then {WGSL} to try the source: ") +
					m.Path)
			case !l.sourceChanged(m.Kernel, text) && m.Err == nil:
				l.showTried(m.Kernel)
			}
		}
	})
}

// FileChanged is called when the watcher has read a changed file. It does nothing if the lab knows the source
// already because an editor saved it.
func (l *Lab) FileChanged(m Changed) {
	switch known, ok := l.read[m.Kernel]; {
	case m.Err != nil:
		l.host.Fail(m.Err)
	case !ok || known != m.Text:
		l.sourceChanged(m.Kernel, m.Text)
	}
}

// sourceChanged is called when the source of a kernel may have changed. It tries a new source on a dispatch.
// If the source equals the original, it restores the original kernel. Before the first step there is no
// dispatch to try a source on: sourceChanged then uses a source of the --shaders folder without a trial, and
// ignores any other source. It returns true if it sent the session a command.
func (l *Lab) sourceChanged(kernel, text string) bool {
	if l.host.NeedsDevice() != "" {
		return false
	}
	l.read[kernel] = text
	k, was := l.host.Index().Kernel(kernel), l.tried[kernel]
	e := &session.KernelEdit{Kernel: kernel, Text: text}
	switch {
	case k == nil, was != nil && was.text == text:
		return false
	case text == FileText(k):
		if delete(l.tried, kernel); l.InPlace(kernel) == "" {
			return false
		}
		e.Text = ""
		l.host.Do(session.Command{Kind: session.Kernel, Edit: e})
		return true
	}
	v := l.variantOf(kernel, text)
	if v == nil {
		v = &variant{kernel: kernel, original: FileText(k), text: text}
	}
	v.before, l.tried[kernel] = was.ran(), v
	c := session.Command{Kind: session.Lab, Edit: e}
	if l.host.NeedsStep() != "" {
		if c.Kind = session.Kernel; l.opts.Shaders == "" {
			return false
		}
	}
	if at, ok := l.on[kernel]; ok && l.standsOn(at.step) {
		c.Edit.Dispatch = &at.dispatch
		if at.step != l.host.Mirror().State.Step {
			c.Step = &at.step
		}
	}
	l.host.Do(c)
	return true
}

// standsOn reports whether a step belongs to the current text. Only steps of the current text can run again.
func (l *Lab) standsOn(step int) bool {
	is := func(t session.Turn) bool { return t.Step == step }
	return slices.ContainsFunc(l.host.Mirror().Left().Turns, is)
}

// Tried stores the result of running a source. The session uses a source of the --shaders folder from now
// on if its result is correct.
func (l *Lab) Tried(c session.Command, reply session.Reply, err error) {
	t := l.tried[c.Edit.Kernel]
	if t == nil || t.text != c.Edit.Text {
		return
	}
	if errors.Is(err, context.Canceled) {
		if l.tried[c.Edit.Kernel] = t.before; t.before == nil { // the same source can be tried again
			delete(l.tried, c.Edit.Kernel)
		}
		return
	}
	t.tried, t.err = reply.Tried, err
	l.keep(t)
	l.showTried(c.Edit.Kernel)
	if t.err == nil && t.tried.Wrong() == "" && l.opts.Shaders != "" {
		l.host.DoNext(session.Command{Kind: session.Kernel, Edit: c.Edit})
	}
}

// showTried shows the result of a kernel's newest source over the view.
func (l *Lab) showTried(kernel string) {
	t := l.tried[kernel]
	switch {
	case t == nil:
		l.host.Remark(kernel + session.KernelSuffix + OriginalSource)
		return
	case t.err == nil && t.tried == nil:
		return // the source is still running
	case t.err != nil:
		l.host.Log("error", t.err.Error())
		lines := append(refusedLines(t.err), l.keepText(kernel, t.before)...)
		l.show(t, view.Page{
			Title: kernel + " not changed", Lines: lines, Head: widget.Bad, Broken: widget.WrapIndented,
		})
	default:
		next := "Press {use text} to use the new source from the next step on, {variants} to compare it with other sources. Press {WGSL} on the dispatch to edit it further."
		if l.opts.Shaders != "" && t.tried.Wrong() == "" {
			next = "The new source is used from the next step on. Press {variants} to compare it with other sources. Press {WGSL} on the dispatch to edit it further."
		}
		verdict, paint := command.TriedVerdict(l.host.Index(), t.tried)
		lines := append([]string{verdict, ""}, command.TriedLines(l.host.Index(), t.tried)...)
		lines = append(lines, "", command.Keyed(next))
		l.show(t, view.Page{Title: t.tried.Name, Lines: lines, Head: paint, Broken: view.WrapHanging})
	}
}

// show shows a text about a variant over the view. If the user is reading another text or is typing, show
// covers nothing, and shows the first line of the text as a result.
func (l *Lab) show(v *variant, p view.Page) {
	if !l.shown() && l.host.Occupied() {
		const more = "%s: %s ({variants} shows more)"
		l.host.Announce(p.Head, fmt.Sprintf(command.Keyed(more), v.name(), p.Lines[0]))
		return
	}
	l.subject, l.shown = v, l.host.Open(p)
}

// refusedLines returns the lines of the error for which a source was refused, with a sign in front of the
// first line.
func refusedLines(err error) []string {
	lines := strings.Split(err.Error(), "\n")
	lines[0] = widget.MarkFail + " refused: " + lines[0]
	return lines
}

// keepText saves the source of attempt t in a file that ends in .last, because the kernel's file holds a
// newer source. It returns lines that tell the user the path, or nil if t is nil.
func (l *Lab) keepText(kernel string, t *variant) []string {
	if t == nil {
		return nil
	}
	path := filepath.Join(l.dir, kernel+session.KernelSuffix+".last")
	l.host.Later("text", "keep "+path, func(context.Context) (string, error) {
		return "kept " + path, os.WriteFile(path, []byte(t.text), 0o600)
	})
	said := command.Keyed("Press {use text} to use the previous source from the next step on: ") +
		t.tried.Name
	if t.tried.Name == l.InPlace(kernel) {
		said = "The previous source is still in use: " + t.tried.Name
	}
	return []string{"", said + ", in the file " + path}
}

// kernel returns the name of the kernel that lab commands apply to: the kernel of the shown result or, if
// no result is shown, the kernel of the selected dispatch.
func (l *Lab) kernel() string {
	if l.shown() {
		return l.subject.kernel
	}
	if under := l.host.Launch(); under != nil {
		if k := command.Own(l.host.Index(), under.Plan.Kernel); k != nil {
			return k.Name
		}
	}
	return ""
}

// Shown reports whether the screen shows the result of the newest attempt.
func (l *Lab) Shown() bool { return l.shown() }

// InPlace returns the name of the edited kernel that replaces a kernel, or "" if the original is in use.
func (l *Lab) InPlace(kernel string) string {
	for _, name := range l.host.Mirror().State.Edited {
		if strings.HasPrefix(name, kernel+"+") {
			return name
		}
	}
	return ""
}

// CannotUse returns the reason that Use cannot switch between two sources, or "" if it can.
func (l *Lab) CannotUse() string {
	if why := l.host.NeedsDevice(); why != "" {
		return why
	}
	kernel := l.kernel()
	if kernel == "" {
		return "select a dispatch first"
	}
	if l.InPlace(kernel) == "" && l.newest(kernel).ran() == nil {
		return kernel + command.Keyed(" has no edited source that compiles; press {WGSL} to edit the kernel")
	}
	return ""
}

// newest returns the variant that the screen shows or, if it shows none of this kernel, the variant of the
// kernel that was tried or used last. It returns nil if there is none.
func (l *Lab) newest(kernel string) *variant {
	if l.shown() && l.subject.kernel == kernel {
		return l.subject
	}
	return l.tried[kernel]
}

// unused returns the newest of those variants of a kernel that have run. It returns nil if none has run, or
// if the session already uses this variant.
func (l *Lab) unused(kernel string) *variant {
	if v := l.newest(kernel).ran(); v != nil && v.tried.Name != l.InPlace(kernel) {
		return v
	}
	return nil
}

// UsedNext returns the hint-line label of the command Use: which source the command would put into use.
func (l *Lab) UsedNext() string {
	if l.unused(l.kernel()) != nil {
		return "use it"
	}
	return "use the original"
}

// Use switches a kernel between its original source and the newest source that ran. The switch applies
// from the next step on. If the result of the new source was wrong, the first call only warns.
func (l *Lab) Use() {
	kernel := l.kernel()
	l.use(kernel, l.unused(kernel))
}

// use puts a variant into use, or the original kernel if v is nil.
func (l *Lab) use(kernel string, v *variant) {
	e := &session.KernelEdit{Kernel: kernel}
	if v != nil {
		if why := v.tried.Wrong(); why != "" && !v.warned {
			v.warned = true
			const warning = "%s %s: %s; press {use text} again to use this source anyway"
			l.host.Say(fmt.Sprintf(command.Keyed(warning), widget.MarkFail, v.tried.Name, why))
			return
		}
		e.Text, l.tried[kernel] = v.text, v
	}
	l.host.CloseText()
	l.host.Do(session.Command{Kind: session.Kernel, Edit: e})
}

// Used tells the user which source the kernel uses from now on.
func (l *Lab) Used(c session.Command) {
	name := c.Edit.Kernel + " itself"
	if c.Edit.Text != "" {
		name = c.Edit.Kernel + session.KernelSuffix
		if v := l.variantOf(c.Edit.Kernel, c.Edit.Text); v != nil {
			name = v.name()
		}
	}
	l.version++
	l.host.Announce(widget.Accent, name+UsedFromNext)
}
