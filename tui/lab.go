package tui

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"gpuscope/session"
	"gpuscope/trace/analyze"
	"gpuscope/tui/lab"
	"gpuscope/tui/tty"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// labHost implements lab.Host, through which the kernel lab uses App.
type labHost struct{ hosting }

var _ lab.Host = labHost{}

func (h labHost) Say(text string)    { h.a.say(text) }
func (h labHost) Report(text string) { h.a.report(text) }
func (h labHost) Announce(p widget.Paint, text string) {
	h.a.announce(p, text)
}
func (h labHost) Log(level, text string) { h.a.log.Add(level, text) }
func (h labHost) Fail(err error)         { h.a.fail(nil, err) }
func (h labHost) Later(kind, description string, f func(context.Context) (string, error)) {
	h.a.later(kind, description, f)
}

func (h labHost) Open(p view.Page) (shown func() bool) {
	over := overlayOf(p)
	h.a.over = over
	return func() bool { return h.a.over == over }
}

// Push opens a screen of the lab, unless it is on top already.
func (h labHost) Push(row *view.Row, v view.View) {
	if h.a.row() != row {
		h.hosting.Push(row, v)
	}
}

func (h labHost) Write(label, name string, data []byte) { h.a.askWrite(label, name, data) }
func (h labHost) Occupied() bool                        { return h.a.over != nil || h.a.typing() }
func (h labHost) CloseText()                            { h.a.closeOverlay() }
func (h labHost) Launch() *analyze.Launch               { return h.a.view().Launch() }
func (h labHost) Index() *analyze.Index                 { return h.a.index }
func (h labHost) Mirror() *session.Mirror               { return &h.a.mirror }
func (h labHost) NeedsDevice() string                   { return h.a.needsDevice() }
func (h labHost) NeedsStep() string                     { return h.a.needsStep() }

func (h labHost) StopRun() {
	if h.a.running() {
		h.a.stop()
	}
}

func (h labHost) DoNext(c session.Command) {
	if h.a.queued == nil {
		h.a.queued = &c
	}
}

func (h labHost) Edit(path string, ended func(error) any) error {
	o := &h.a.opts
	cmd, err := editorOf(path, o.editor, o.Input, o.output())
	if err == nil {
		h.a.handOver(cmd, ended)
	}
	return err
}

// editorOf returns the command that opens a file in an editor. If editor is "", the user's own editor is
// chosen. The editor takes over the terminal.
func editorOf(path, editor string, in io.Reader, out io.Writer) (*exec.Cmd, error) {
	words := strings.Fields(cmp.Or(editor, os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if len(words) == 0 {
		words = []string{"vi"}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("editor %s not found: set VISUAL or EDITOR; the file to edit is %s",
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
