package plain

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gpuscope/session"
	"gpuscope/tui/command"
)

// EditOfFile reads the edited source of kernel NAME from a file NAME.wgsl.
func EditOfFile(path string) (*session.KernelEdit, error) {
	kernel, is := strings.CutSuffix(filepath.Base(path), session.KernelSuffix)
	if !is {
		return nil, errors.New("source missing: give a file NAME" + session.KernelSuffix + ", where NAME is the name of the kernel")
	}
	text, err := session.ReadKernelText(path)
	return &session.KernelEdit{Kernel: kernel, Text: text}, err
}

// labCommand runs the source in a file alternately with the original kernel.
func labCommand(p *front, path string) (session.Command, error) {
	e, err := EditOfFile(path)
	if err == nil {
		p.inTurns, p.wrong = *e, ""
	}
	return session.Command{Kind: session.Lab, Edit: e}, err
}

// tried prints the result of running an edited kernel.
func (p *front) tried(r session.Reply) {
	if t := r.Tried; t != nil {
		p.wrong = t.Wrong()
		verdict, _ := command.TriedVerdict(p.index, t)
		p.say("%s: %s", t.Name, verdict)
		for _, line := range command.TriedLines(p.index, t) {
			p.say("%s", line)
		}
	}
}

// useCommand parses the u command, which makes the following steps use the source in a file, or restores the
// original source of a named kernel. If the source has already run with a wrong result, the first call
// returns a warning instead of a command.
func useCommand(p *front, what string) (session.Command, error) {
	e, err := &session.KernelEdit{Kernel: what}, error(nil)
	if what == "" {
		err = session.Refusef("u FILE or NAME: argument missing. To use an edited source, type the path of its file NAME%s. To restore an original kernel, type its name",
			session.KernelSuffix)
	}
	if strings.HasSuffix(what, session.KernelSuffix) {
		e, err = EditOfFile(what)
	}
	if err == nil && *e == p.inTurns && p.wrong != "" {
		err = fmt.Errorf("%s: %s; type u again to use this source anyway", filepath.Base(what),
			p.wrong)
		p.wrong = ""
	}
	return session.Command{Kind: session.Kernel, Edit: e}, err
}
