package tui

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gpuscope/session"
)

// editOfFile is the text in a file NAME.wgsl, of kernel NAME.
func editOfFile(path string) (*session.KernelEdit, error) {
	kernel, is := strings.CutSuffix(filepath.Base(path), session.KernelSuffix)
	if !is {
		return nil, errors.New("which text? name a file NAME" + session.KernelSuffix + ", of kernel NAME")
	}
	text, err := session.ReadKernelText(path)
	return &session.KernelEdit{Kernel: kernel, Text: text}, err
}

// plainLab has the text of a file run in turns with its kernel.
func plainLab(p *plainText, path string) (session.Command, error) {
	e, err := editOfFile(path)
	if err == nil {
		p.inTurns, p.wrong = *e, ""
	}
	return session.Command{Kind: session.Lab, Edit: e}, err
}

// tried says what came of a text.
func (p *plainText) tried(r session.Reply) {
	if t := r.Tried; t != nil {
		p.wrong = t.Wrong()
		p.say("%s", t.Name)
		for _, line := range triedLines(p.index, t) {
			p.say("%s", line)
		}
	}
}

// plainUse has the steps to come run the text of a file, or a kernel that is named itself again. Of a text
// that ran and is wrong it says so the first time.
func plainUse(p *plainText, what string) (session.Command, error) {
	e, err := &session.KernelEdit{Kernel: what}, error(nil)
	if what == "" {
		err = session.Refusef("u FILE or NAME: the text in a file NAME%s, or a kernel to run itself again",
			session.KernelSuffix)
	}
	if strings.HasSuffix(what, session.KernelSuffix) {
		e, err = editOfFile(what)
	}
	if err == nil && *e == p.inTurns && p.wrong != "" {
		err = fmt.Errorf("%s: %s; u again has the steps to come run it all the same", filepath.Base(what),
			p.wrong)
		p.wrong = ""
	}
	return session.Command{Kind: session.Kernel, Edit: e}, err
}
