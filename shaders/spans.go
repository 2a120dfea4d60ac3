package shaders

import (
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

// Which bytes of a source the template does not have as they stand is found out by the expansion itself: the
// parsed templates get a mark before and after whatever writes or chooses text, and tidy takes the marks out.
// They are control characters, which no WGSL has.
const (
	beginFilled = '\x01' // an action writes
	endFilled   = '\x02'
	beginTaken  = '\x03' // a part is taken in, or a branch of a condition
	endTaken    = '\x04'
)

// parsed are the files that were added, by their names.
var parsed = struct {
	sync.Mutex
	files map[string]*template.Template
}{files: map[string]*template.Template{}}

// parseFile is a file with marks, parsed when it is first asked for.
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

// add takes a file into a set of templates.
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

// counters are what numbers the pieces of an unrolled loop, variables of ranges and what is computed from
// them, and what a template tells a part that it takes in: the fields R and B number rows, Of and By name
// variables. What they write is no constant: a loop that is unrolled is in the template as it stands.
type counters map[string]bool

// mention says whether a part of an action has a counter.
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

// mark puts marks around the nodes of a list that write what a constant says or choose text by one.
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
			for _, v := range n.Pipe.Decl { // it writes nothing
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

// tidy takes out what template actions leave: marks, blanks at line ends, and all but one of the empty
// lines in a row. It says where what was marked stands in what is left.
func tidy(s string) (source string, filled, taken []Span) {
	type marks struct{ filled, taken int16 } // how deep a byte stands in each
	var now marks
	out, of := make([]byte, 0, len(s)), make([]marks, 0, len(s))
	begun := 0 // of the line in out
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
