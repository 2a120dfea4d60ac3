package graph

import (
	"fmt"
	"strings"
	"unicode"

	"gpuscope/session"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
)

// cannotSave returns the reason that the value cannot be written to a file, or "".
func (p *ValuePage) cannotSave() string {
	if p.at.Running {
		return command.Keyed("the model is running; press {run} to pause it")
	}
	return p.unreadable()
}

// askSave asks for the file to write the whole value to. It writes this value even if the user opens another
// one while typing the file name.
func (p *ValuePage) askSave() {
	key, _ := p.key()
	at := p.lookAt(key)
	n, size := numel(p.dims()), p.elementSize()
	p.host.Ask(view.Question{
		Label: command.ValueTo(".npy", n, size), Hint: "path of a .npy or .csv file",
		Suggest: command.FreeName(p.fileName(key)),
		Live:    func(path string) string { return command.ValueTo(path, n, size) },
		Take: func(path string) {
			if path = command.Expand(path); path != "" {
				save := &session.SaveTo{Path: command.Absolute(path)}
				p.host.Do(session.Command{Kind: session.Save, At: &at, Save: save})
			}
		},
	})
}

// lookAt returns the request that selects the shown value.
func (p *ValuePage) lookAt(key valueKey) session.LookAt {
	at := session.LookAt{Value: key.value}
	if key.step >= 0 {
		at.Step = &key.step
	}
	if key.after >= 0 {
		at.After = &key.after
	}
	if key.minus >= 0 {
		at.Baseline = &session.BaselineAt{Step: key.minus, After: at.After}
	}
	return at
}

// elementSize returns the size in bytes of an element in a .npy file.
func (p *ValuePage) elementSize() int {
	if p.compares {
		return 8
	}
	dtype := p.at.Trace.Graph.Values[p.shownValue()].DType
	if t := p.page.Value.t; t != nil && t.Value == p.shownValue() {
		dtype = t.DType
	}
	switch dtype {
	case "f16":
		return 2
	case "i8", "q4":
		return 1
	}
	return 4 // also of decoded weights
}

// fileName suggests a name for the file of a value: its name, the step and the chosen dispatch.
func (p *ValuePage) fileName(key valueKey) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.TrimLeft(p.at.Trace.Graph.Values[key.value].Name, "."))
	if key.step >= 0 {
		name += fmt.Sprintf("-s%d", key.step)
	}
	if key.after >= 0 {
		name += fmt.Sprintf("-d%d", key.after)
	}
	if key.minus >= 0 {
		name += fmt.Sprintf("-minus-s%d", key.minus)
	}
	return name + ".npy"
}
