// Package shaders holds the WGSL of every kernel as text templates, and expands them.
//
// A template is one file NAME.wgsl. Expand fills in its named constants (text/template, so {{.Lanes}}, {{if}}
// and {{range}}) and reads the kernel's description back from the text that came out: the expanded WGSL is
// the only place where workgroup size, bindings and params are written down. The files in include define
// parts that templates share: {{template "flat_group" .}} takes one in; (set . "Of" "scale") for the dot
// gives it constants of its own. The constant Format adds the file of that name in include/format, which
// says how the weights of a matrix are read (include/format.wgsl has what it must define).
//
// A template follows these rules, and Expand refuses what does not:
//
//   - the entry point is main, in group 0;
//   - bindings are numbered from 0 without gaps ({{binding}} is the next one): storage buffers first, and
//     last the params, if any, as var<uniform> of a struct whose fields are all u32, i32 or f32, 64 at most;
//   - array lengths in workgroup memory are integer literals, module constants, or products of these;
//   - every constant that is given is used, and every one that is used is given.
//
// The WGSL front ends in use are old: a template does without enable, override, const_assert and the packed
// 8-bit builtins.
package shaders

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

//go:embed *.wgsl include/*.wgsl include/format/*.wgsl
var files embed.FS

// Constants are the values that specialise a template: int, bool, string, float32 or Text, by name.
type Constants map[string]any

// Text is WGSL that a template is completed with. It is in the source for all to see, so a list of constants
// leaves it out.
type Text string

// Kernel is an expanded template.
type Kernel struct {
	Template  string
	Constants string // for people: "Lanes 64, Vec 4"
	Source    string // WGSL, entry point main
	// Filled and Taken are where Source is not the template as it was written, by their places and without
	// overlaps: what actions wrote, and what was taken in from other files or left in by a condition.
	Filled, Taken []Span
	WorkgroupSize [3]int
	Storage       []Storage // bindings 0, 1, ...
	Params        []Param   // of the uniform binding after them; empty where there is none
}

// Storage is a storage binding.
type Storage struct {
	Name  string
	Elem  string // the scalar that its elements are made of: "u32" of array<vec4<u32>>
	Read  bool   // the kernel reads it, whatever it may do with it
	Write bool   // read_write
}

// Span is a range of bytes of a source, from and to.
type Span = [2]int

// Param is a field of the params block.
type Param struct {
	Name   string
	Type   string // "u32", "i32", "f32"
	Offset int    // in bytes
}

// Names are the names of all templates, sorted.
func Names() []string {
	list, err := fs.Glob(files, "*.wgsl")
	if err != nil {
		return nil // the pattern is good, so this does not happen
	}
	for i, n := range list {
		list[i] = strings.TrimSuffix(n, ".wgsl")
	}
	return list
}

// Template is the text of a template as it was written, for showing which parts of a kernel are specialised.
func Template(name string) (string, error) {
	text, err := files.ReadFile(name + ".wgsl")
	if err != nil {
		return "", fmt.Errorf("shader %s: there is no such template", name)
	}
	return string(text), nil
}

// Expand specialises a template.
func Expand(name string, c Constants) (Kernel, error) {
	k, err := expand(name, c)
	if err != nil {
		return Kernel{}, fmt.Errorf("shader %s.wgsl: %w", name, err)
	}
	return k, nil
}

func expand(name string, c Constants) (Kernel, error) {
	text, err := Template(name)
	if err != nil {
		return Kernel{}, err
	}
	shared, err := includes()
	if err != nil {
		return Kernel{}, err
	}
	t, err := shared.Clone()
	if err != nil {
		return Kernel{}, err
	}
	bindings := 0
	t.Funcs(template.FuncMap{
		"binding": func() string {
			bindings++
			return fmt.Sprintf("@group(0) @binding(%d)", bindings-1)
		},
		"defined": func(part string) bool { return t.Lookup(part) != nil },
	})
	if format, ok := c["Format"].(string); ok {
		text, err := files.ReadFile("include/format/" + format + ".wgsl")
		if err != nil {
			return Kernel{}, fmt.Errorf("format %s: there is no such file in include/format", format)
		}
		if err := add(t, "format/"+format+".wgsl", string(text)); err != nil {
			return Kernel{}, err
		}
	}
	if err := add(t, name, text); err != nil {
		return Kernel{}, err
	}
	t = t.Lookup(name)
	if err := unused(t, c); err != nil {
		return Kernel{}, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]any(c)); err != nil {
		return Kernel{}, err
	}
	source, filled, taken := tidy(b.String())
	k, err := Read(source)
	k.Template, k.Constants, k.Filled, k.Taken = name, c.list(), filled, taken
	return k, err
}

// Read is a kernel of WGSL that comes from elsewhere, described by what it says of itself.
func Read(source string) (Kernel, error) {
	k := Kernel{Source: source}
	if err := k.describe(); err != nil {
		return Kernel{}, err
	}
	return k, nil
}

// includes are the shared parts, parsed once.
var includes = sync.OnceValues(func() (*template.Template, error) {
	root := template.New("").Option("missingkey=error").Funcs(functions)
	list, err := fs.Glob(files, "include/*.wgsl")
	if err != nil {
		return nil, err
	}
	for _, file := range list {
		text, err := files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := add(root, path.Base(file), string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return root, nil
})

// functions are what templates call.
var functions = template.FuncMap{
	"add": func(a, b int) int { return a + b },
	"sub": func(a, b int) int { return a - b },
	"mul": func(a, b int) int { return a * b },
	"div": func(a, b int) (int, error) {
		if b == 0 {
			return 0, errors.New("div by 0")
		}
		return a / b, nil
	},
	// number is number i of some vectors: of a0, a1, ... "a1[2]" is 6.
	"number": func(of string, i int) string { return fmt.Sprintf("%s%d[%d]", of, i/4, i%4) },
	// swing counts to and fro: i of n in even turns, and from the end in odd ones.
	"swing": func(i, n, turn int) int {
		if turn%2 == 1 {
			return n - 1 - i
		}
		return i
	},
	"set": set,
	// Each expansion has these two of its own.
	"binding": func() string { return "" },
	"defined": func(string) bool { return false },
}

// set is a copy of the constants with more of them, given by name and value in turns: what a part is taken in
// with.
func set(c map[string]any, more ...any) (map[string]any, error) {
	c = maps.Clone(c)
	if len(more)%2 != 0 {
		return nil, fmt.Errorf("set: %d arguments, want names and values in turns", len(more))
	}
	for i := 0; i < len(more); i += 2 {
		name, ok := more[i].(string)
		if !ok {
			return nil, fmt.Errorf("set: %v is no name", more[i])
		}
		c[name] = more[i+1]
	}
	return c, nil
}

// unused says which constant no part of the template mentions: it would make two kernels of one text.
func unused(t *template.Template, c Constants) error {
	used, seen := map[string]bool{}, map[string]bool{}
	var walk func(n parse.Node)
	take := func(name string) {
		if sub := t.Lookup(name); sub != nil && sub.Tree != nil && !seen[name] {
			seen[name] = true
			if name == "format_functions" {
				used["Format"] = true
			}
			walk(sub.Tree.Root)
		}
	}
	walk = func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ListNode:
			if n != nil {
				for _, m := range n.Nodes {
					walk(m)
				}
			}
		case *parse.ActionNode:
			walk(n.Pipe)
		case *parse.PipeNode:
			if n != nil {
				for _, m := range n.Cmds {
					walk(m)
				}
			}
		case *parse.CommandNode:
			for _, m := range n.Args {
				walk(m)
			}
		case *parse.FieldNode:
			used[n.Ident[0]] = true
		case *parse.VariableNode:
			if len(n.Ident) > 1 && n.Ident[0] == "$" {
				used[n.Ident[1]] = true
			}
		case *parse.IfNode:
			walk(n.Pipe)
			walk(n.List)
			walk(n.ElseList)
		case *parse.RangeNode:
			walk(n.Pipe)
			walk(n.List)
			walk(n.ElseList)
		case *parse.WithNode:
			walk(n.Pipe)
			walk(n.List)
			walk(n.ElseList)
		case *parse.TemplateNode:
			walk(n.Pipe)
			take(n.Name)
		}
	}
	take(t.Name())
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if !used[name] {
			return fmt.Errorf("constant %s is given and not used", name)
		}
	}
	return nil
}

// list is the constants in the order of their names: "Lanes 64, Vec 4". What is false, zero or empty is left
// out.
func (c Constants) list() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(c)) {
		switch v := c[key]; v {
		case false, 0, float32(0), "", Text(""):
		case true:
			parts = append(parts, key)
		default:
			if _, ok := v.(Text); !ok {
				parts = append(parts, fmt.Sprintf("%s %v", key, v))
			}
		}
	}
	return strings.Join(parts, ", ")
}
