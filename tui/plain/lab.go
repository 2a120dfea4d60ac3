package plain

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gpuscope/session"
	"gpuscope/tui/command"
)

// EditOfFile is the text in a file NAME.wgsl, of kernel NAME.
func EditOfFile(path string) (*session.KernelEdit, error) {
	kernel, is := strings.CutSuffix(filepath.Base(path), session.KernelSuffix)
	if !is {
		return nil, errors.New("source missing: name a file NAME" + session.KernelSuffix + ", of kernel NAME")
	}
	text, err := session.ReadKernelText(path)
	return &session.KernelEdit{Kernel: kernel, Text: text}, err
}

// labCommand has the text of a file run in turns with its kernel.
func labCommand(p *front, path string) (session.Command, error) {
	e, err := EditOfFile(path)
	if err == nil {
		p.inTurns, p.wrong = *e, ""
	}
	return session.Command{Kind: session.Lab, Edit: e}, err
}

// tried says what came of a text.
func (p *front) tried(r session.Reply) {
	if t := r.Tried; t != nil {
		p.wrong = t.Wrong()
		p.say("%s", t.Name)
		for _, line := range command.TriedLines(p.index, t) {
			p.say("%s", line)
		}
	}
}

// useCommand has the steps to come run the text of a file, or a kernel that is named itself again. Of a text
// that ran and is wrong it says so the first time.
func useCommand(p *front, what string) (session.Command, error) {
	e, err := &session.KernelEdit{Kernel: what}, error(nil)
	if what == "" {
		err = session.Refusef("u FILE or NAME: want a file NAME%s to use, or the name of a kernel to restore",
			session.KernelSuffix)
	}
	if strings.HasSuffix(what, session.KernelSuffix) {
		e, err = EditOfFile(what)
	}
	if err == nil && *e == p.inTurns && p.wrong != "" {
		err = fmt.Errorf("%s: %s; type u again to use it anyway", filepath.Base(what),
			p.wrong)
		p.wrong = ""
	}
	return session.Command{Kind: session.Kernel, Edit: e}, err
}
