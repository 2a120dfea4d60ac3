// Package shaders contains the WGSL of every kernel as text templates, and expands the templates.
//
// A template is a file NAME.wgsl in the syntax of text/template, so it can use {{.Lanes}}, {{if}} and
// {{range}}. Expand fills in the template's named constants. Expand then parses the expanded WGSL to find the
// kernel's workgroup size, bindings and params. No other file repeats this information.
//
// The files in include define parts that templates share. {{template "flat_group" .}} includes a part. A
// template can pass additional constants to a part: it then writes (set . "Of" "scale") instead of the dot.
// If the constant Format is set, Expand adds the file with this name in include/format. This file defines
// functions that read the weights of a matrix; include/format.wgsl lists the functions that it must define.
//
// Templates follow the rules below. Expand returns an error for a template that breaks a rule. Only the rule
// for array lengths is checked elsewhere, by package kind, which computes the size of the workgroup memory.
//
//   - The entry point is named main, and all bindings are in group 0.
//   - Bindings are numbered from 0 without gaps. {{binding}} expands to the attributes of the next binding.
//   - Storage buffers come first. The params, if there are any, come last. They are a var<uniform> of a
//     struct with at most 64 fields of type u32, i32 or f32.
//   - The lengths of arrays in workgroup memory are integer literals, module constants, or products of these.
//   - The template uses every constant that the caller passes, and the caller passes every constant that the
//     template uses.
//
// The supported WGSL compilers are old, so templates must not use enable, override, const_assert or the
// packed 8-bit builtins.
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

// Constants are named values, from which a template is expanded to a kernel. Each value is an int, bool,
// string, float32 or Text.
type Constants map[string]any

// Text is the type of a constant that is WGSL code. Kernel.Constants does not list such constants, because
// the code can be seen in the kernel's source.
type Text string

// Kernel is an expanded template.
type Kernel struct {
	Template  string
	Constants string // readable list of the constants, such as "Lanes 64, Vec 4"
	Source    string // WGSL with the entry point main
	// Filled and Taken list the spans of Source that differ from the template's text. Text in Filled was
	// written by template actions, such as values of constants. Text in Taken comes from an included file or
	// from a branch of a condition. Each list is sorted, and its spans do not overlap.
	Filled, Taken []Span
	WorkgroupSize [3]int
	Storage       []Storage // bindings 0, 1, ...
	Params        []Param   // fields of the params struct; empty if the kernel has no params
}

// Storage is a storage binding of a kernel.
type Storage struct {
	Name  string
	Elem  string // scalar type of the elements, such as "u32" for array<vec4<u32>>
	Read  bool   // the kernel reads the buffer
	Write bool   // the access mode is read_write
}

// Span is a range of bytes in a source: the offset of its first byte, and the offset after its last byte.
type Span = [2]int

// Param is a field of the params struct.
type Param struct {
	Name   string
	Type   string // "u32", "i32", "f32"
	Offset int    // offset in bytes
}

// Names returns the names of all templates, sorted.
func Names() []string {
	list, err := fs.Glob(files, "*.wgsl")
	if err != nil {
		return nil // cannot happen, because the pattern is valid
	}
	for i, n := range list {
		list[i] = strings.TrimSuffix(n, ".wgsl")
	}
	return list
}

// Template returns the unexpanded text of a template.
func Template(name string) (string, error) {
	text, err := files.ReadFile(name + ".wgsl")
	if err != nil {
		return "", fmt.Errorf("shader %s: no template has this name", name)
	}
	return string(text), nil
}

// Expand fills the constants into a template and returns the resulting kernel. It returns an error if the
// constants do not match the template or if the expanded WGSL breaks a rule of this package.
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
			return Kernel{}, fmt.Errorf("format %s: include/format has no file for this format", format)
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

// Read parses WGSL source that was not expanded from a template, such as the source of a kernel that the user
// edited. It returns the kernel with its workgroup size, bindings and params.
func Read(source string) (Kernel, error) {
	k := Kernel{Source: source}
	if err := k.describe(); err != nil {
		return Kernel{}, err
	}
	return k, nil
}

// includes() returns the parts that templates share. It parses them on the first call.
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

// functions are the functions that templates can call.
var functions = template.FuncMap{
	"add": func(a, b int) int { return a + b },
	"sub": func(a, b int) int { return a - b },
	"mul": func(a, b int) int { return a * b },
	"div": func(a, b int) (int, error) {
		if b == 0 {
			return 0, errors.New("div: the divisor is 0")
		}
		return a / b, nil
	},
	// number returns the WGSL expression for float i of a list. The list is stored in several vec4 variables,
	// and the first argument is the prefix of their names. For example, number "a" 6 returns "a1[2]".
	"number": func(of string, i int) string { return fmt.Sprintf("%s%d[%d]", of, i/4, i%4) },
	// swing returns the index for iteration i of a loop over n items. Successive loops have the numbers turn
	// = 0, 1, 2, ...: even loops run forward, and odd loops run backward.
	"swing": func(i, n, turn int) int {
		if turn%2 == 1 {
			return n - 1 - i
		}
		return i
	},
	"set": set,
	// The parser of templates must know every function, so these two functions are placeholders. Each
	// expansion replaces them by its own functions.
	"binding": func() string { return "" },
	"defined": func(string) bool { return false },
}

// set(c, more) returns a copy of the constants c with additional constants. The list `more` has the name of a
// constant, then its value, then the next name, and so on. Templates use set to pass additional constants to
// a shared part.
func set(c map[string]any, more ...any) (map[string]any, error) {
	c = maps.Clone(c)
	if len(more)%2 != 0 {
		return nil, fmt.Errorf("set: got %d arguments after the constants; want pairs of a name and a value",
			len(more))
	}
	for i := 0; i < len(more); i += 2 {
		name, ok := more[i].(string)
		if !ok {
			return nil, fmt.Errorf("set: constant name %v is not a string", more[i])
		}
		c[name] = more[i+1]
	}
	return c, nil
}

// unused returns an error if there is a constant that neither the template nor its parts use. The error names
// the constant. Different values of such a constant would create several kernels with the same source.
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
			return fmt.Errorf("constant %s is not used by the template", name)
		}
	}
	return nil
}

// list() returns the constants as text, sorted by name, such as "Lanes 64, Vec 4". It omits constants that
// are false, zero or empty, and constants of type Text.
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
