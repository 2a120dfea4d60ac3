package shaders

import (
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

// These marks find the bytes of an expanded source that differ from the template's text. mark puts a mark
// before and after each template node that writes or chooses text, and tidy removes the marks from the
// expanded source. The marks are control characters, which do not occur in WGSL.
const (
	beginFilled = '\x01' // before text that a template action writes
	endFilled   = '\x02'
	beginTaken  = '\x03' // before text from an included part or from a branch of a condition
	endTaken    = '\x04'
)

// parsed caches parsed files. Its keys are file names.
var parsed = struct {
	sync.Mutex
	files map[string]*template.Template
}{files: map[string]*template.Template{}}

// parseFile parses a file as a template and adds the marks. Later calls with the same name return the same
// template.
func parseFile(name, text string) (*template.Template, error) {
	parsed.Lock()
	defer parsed.Unlock()
	if t := parsed.files[name]; t != nil {
		return t, nil
	}
	t, err := template.New(name).Funcs(functions).Parse(text)
	if err != nil {
		return nil, err
	}
	for _, part := range t.Templates() {
		counters{"R": true, "B": true, "Of": true, "By": true}.mark(part.Root)
	}
	parsed.files[name] = t
	return t, nil
}

// add parses a file and adds its templates to t.
func add(t *template.Template, name, text string) error {
	file, err := parseFile(name, text)
	if err != nil {
		return err
	}
	for _, part := range file.Templates() {
		if _, err := t.AddParseTree(part.Name(), part.Tree); err != nil {
			return err
		}
	}
	return nil
}

func text(mark rune) *parse.TextNode {
	return &parse.TextNode{NodeType: parse.NodeText, Text: []byte(string(mark))}
}

// counters is the set of template variables and fields that have a different value in each copy of the body
// of an unrolled loop. It contains the variables of {{range}}, and variables computed from them. It also
// contains some arguments of shared parts: R and B, which are indices of rows, and Of and By, which are names
// of variables. Text that a counter writes is not marked as filled, because the unrolled loop itself is part
// of the template.
type counters map[string]bool

// mention(n) reports whether the node n of a template uses a counter.
func (c counters) mention(n parse.Node) bool {
	switch n := n.(type) {
	case *parse.PipeNode:
		return slices.ContainsFunc(n.Cmds, func(m *parse.CommandNode) bool { return c.mention(m) })
	case *parse.CommandNode:
		return slices.ContainsFunc(n.Args, c.mention)
	case *parse.VariableNode:
		last := n.Ident[len(n.Ident)-1]
		return c[last]
	case *parse.FieldNode:
		return c[n.Ident[0]]
	}
	return false
}

// mark(list) puts marks around the nodes of a template that write the value of a constant, and around the
// nodes that select text depending on a constant.
func (c counters) mark(list *parse.ListNode) {
	if list == nil {
		return
	}
	var out []parse.Node
	put := func(begin, end rune, n parse.Node) { out = append(out, text(begin), n, text(end)) }
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			counts := c.mention(n.Pipe)
			for _, v := range n.Pipe.Decl { // a variable declaration, which writes no text
				c[v.Ident[0]] = c[v.Ident[0]] || counts
			}
			if len(n.Pipe.Decl) == 0 && !counts && n.Pipe.String() != "binding" {
				put(beginFilled, endFilled, n)
				continue
			}
		case *parse.TemplateNode:
			put(beginTaken, endTaken, n)
			continue
		case *parse.IfNode:
			c.mark(n.List)
			c.mark(n.ElseList)
			if !c.mention(n.Pipe) {
				put(beginTaken, endTaken, n)
				continue
			}
		case *parse.RangeNode:
			for _, v := range n.Pipe.Decl {
				c[v.Ident[0]] = true
			}
			c.mark(n.List)
		}
		out = append(out, n)
	}
	list.Nodes = out
}

// tidy removes from an expanded source the marks, white space at line ends, and all but one of several
// consecutive empty lines. It returns the resulting source, and the spans of it that were between marks.
func tidy(s string) (source string, filled, taken []Span) {
	type marks struct{ filled, taken int16 } // number of open marks around a byte
	var now marks
	out, of := make([]byte, 0, len(s)), make([]marks, 0, len(s))
	begun := 0 // offset in out at which the current line begins
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case beginFilled:
			now.filled++
		case endFilled:
			now.filled--
		case beginTaken:
			now.taken++
		case endTaken:
			now.taken--
		case '\n':
			n := begun + len(strings.TrimRight(string(out[begun:]), " \t\r"))
			out, of = out[:n], of[:n]
			if n == begun && (n == 0 || strings.HasSuffix(string(out[max(0, n-2):]), "\n\n")) {
				continue
			}
			out, of = append(out, '\n'), append(of, now)
			begun = len(out)
		default:
			out, of = append(out, s[i]), append(of, now)
		}
	}
	n := len(strings.TrimRight(string(out), " \t\r\n"))
	out, of = append(out[:n], '\n'), append(of[:n], marks{})
	spans := func(marked func(marks) bool) []Span {
		var list []Span
		for at := 0; at < len(of); {
			end := at
			for end < len(of) && marked(of[end]) {
				end++
			}
			if end > at && strings.TrimSpace(string(out[at:end])) != "" {
				list = append(list, Span{at, end})
			}
			at = end + 1
		}
		return list
	}
	filled = spans(func(m marks) bool { return m.filled > 0 })
	taken = spans(func(m marks) bool { return m.taken > 0 })
	return string(out), slices.Clip(filled), slices.Clip(taken)
}
