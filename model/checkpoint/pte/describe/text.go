package describe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/trace/table"
)

// Text writes readable tables of programs to w. For several programs, it first writes a table of all methods.
func Text(ctx context.Context, w io.Writer, programs ...*Info) error {
	var b bytes.Buffer
	if len(programs) > 1 {
		if err := write(ctx, &b, together(programs)); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	for i, p := range programs {
		if i > 0 {
			b.WriteByte('\n')
		}
		p.head(&b)
		for _, t := range p.tables() {
			b.WriteByte('\n')
			if err := write(ctx, &b, t); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func write(ctx context.Context, b *bytes.Buffer, t *table.Table) error {
	rows, err := t.Select(ctx, table.Selection{})
	if err != nil {
		return err
	}
	return t.Print(ctx, b, "text", rows, 0)
}

// together returns one table with the methods of several programs.
func together(programs []*Info) *table.Table {
	type row struct {
		file string
		m    *Method
	}
	var rows []row
	for _, p := range programs {
		for i := range p.Methods {
			rows = append(rows, row{filepath.Base(p.File), &p.Methods[i]})
		}
	}
	return list(fmt.Sprintf("%s in %s", table.Plural(len(rows), "method"), table.Plural(len(programs), "program")), rows,
		column("file", func(r *row) string { return name(r.file) }),
		column("method", func(r *row) string { return name(r.m.Name) }),
		column("inputs", func(r *row) string { return ports(r.m.Inputs) }),
		column("outputs", func(r *row) string { return ports(r.m.Outputs) }),
		column("runs", func(r *row) string { return r.m.runs() }))
}

func (p *Info) head(b *bytes.Buffer) {
	parts := []string{
		printable.Clean(p.File), "ExecuTorch program", table.Memory(p.Bytes), table.Plural(len(p.Methods), "method"),
	}
	if p.NamedData > 0 {
		parts = append(parts, fmt.Sprintf("%s by name, %s", table.Plural(p.NamedData, "constant"),
			table.Memory(p.NamedDataBytes)))
	}
	if len(p.Suites) > 0 || p.Format == "bpte" {
		cases := 0
		for _, s := range p.Suites {
			cases += s.Cases
		}
		parts = append(parts, "bundled with "+table.Plural(cases, "test case"))
	}
	fmt.Fprintln(b, strings.Join(parts, " · "))
	for _, d := range p.DataFiles {
		fmt.Fprintf(b, "data file %s · %s · %s\n", printable.Clean(d.File), table.Plural(d.Keys, "constant"),
			table.Memory(d.Bytes))
	}
	for _, s := range p.Suites {
		fmt.Fprintf(b, "method %s has %s\n", name(s.Method), table.Plural(s.Cases, "test case"))
	}
	for i := range p.Methods {
		if m := &p.Methods[i]; m.Plan != nil && m.Plan.Refused != "" {
			fmt.Fprintf(b, "gpuscope cannot run method %s: %s\n", name(m.Name),
				printable.Short(m.Plan.Refused, 400))
		}
	}
	missing := map[string]bool{}
	for i := range p.Methods {
		for _, d := range p.Methods[i].Delegates {
			if d.Graph == nil {
				continue
			}
			for _, c := range d.Graph.Constants {
				if c.File == "" {
					missing[c.Key] = true
				}
			}
		}
	}
	if n := len(missing); n > 0 {
		fmt.Fprintf(b, "missing: no data file contains %s (first by name: %s). Name the .ptd files with --data\n",
			table.Plural(n, "constant"), name(slices.Min(slices.Collect(maps.Keys(missing)))))
	}
}

// name makes a name from the file printable and truncates it if it is long.
func name(s string) string { return printable.Short(s, longest) }

// column returns a function that makes a text column of a table. The given function returns the text for one
// row.
func column[R any](title string, of func(*R) string) func([]R) table.Column {
	return func(rows []R) table.Column {
		return table.ColumnsOf(rows).Text(80, strings.ReplaceAll(title, " ", "_"), title, "", of)
	}
}

// number returns a function that makes an integer column of a table. The given function returns the integer
// for one row.
func number[R any](title, unit string, of func(*R) int64) func([]R) table.Column {
	return func(rows []R) table.Column {
		return table.ColumnsOf(rows).Int(80, strings.ReplaceAll(title, " ", "_"), title, unit, "", of)
	}
}

// list returns a table with a title and the given columns.
func list[R any](title string, rows []R, columns ...func([]R) table.Column) *table.Table {
	var made []table.Column
	for _, c := range columns {
		made = append(made, c(rows))
	}
	t := table.New("program", made, table.Flat(len(rows), strconv.Itoa))
	t.Title = append(t.Title, table.Title(table.Say(0, "%s", title)))
	return t
}

// indexed is a row together with its index in the list of rows.
type indexed[R any] struct {
	i   int
	row *R
}

func index[R any](rows []R) []indexed[R] {
	out := make([]indexed[R], len(rows))
	for i := range rows {
		out[i] = indexed[R]{i, &rows[i]}
	}
	return out
}

func (p *Info) tables() []*table.Table {
	all := []*table.Table{list("Methods", p.Methods,
		column("method", func(m *Method) string { return name(m.Name) }),
		column("inputs", func(m *Method) string { return ports(m.Inputs) }),
		column("outputs", func(m *Method) string { return ports(m.Outputs) }),
		column("runs", (*Method).runs),
	)}
	for i := range p.Methods {
		m := &p.Methods[i]
		if len(m.Instructions) == 0 {
			continue
		}
		all = append(all, m.tables(p.File)...)
	}
	return all
}

// runs returns a summary of what a method executes: its instructions, delegates and portable operators.
func (m *Method) runs() string {
	if len(m.Instructions) == 0 {
		return "nothing: constant"
	}
	parts := []string{table.Plural(len(m.Instructions), "instruction")}
	if n := len(m.Delegates); n > 0 {
		parts = append(parts, table.Plural(n, "delegate"))
	}
	if n := len(m.Portable); n > 0 {
		parts = append(parts, table.Plural(n, "portable operator"))
	}
	return strings.Join(parts, ", ")
}

// ports returns a text that lists the inputs or the outputs of a method. It truncates a long list.
func ports(all []Port) string {
	const most = 8
	var parts []string
	for i := range all {
		if i == most {
			parts = append(parts, fmt.Sprintf("… (%d)", len(all)))
			break
		}
		parts = append(parts, all[i].String())
	}
	return strings.Join(parts, ", ")
}

// String returns the type and shape of a tensor, such as "int64 [1, ≤127]". For other values it returns the
// literal if it is known, otherwise the type.
func (p *Port) String() string {
	if p.Memory != "" {
		return p.Type + " " + shape(p.Dims)
	}
	if p.Literal != "" {
		return name(p.Literal)
	}
	return p.Type
}

// shape formats dims. A dim of maximum size 127 becomes "≤127" if it changes from run to run, and "127?" if
// the file does not state whether it changes.
func shape(dims []Dim) string {
	var parts []string
	for _, d := range dims {
		text := strconv.Itoa(d.Size)
		switch d.Change {
		case vulkan.Dynamic:
			text = "≤" + text
		case vulkan.Unknown:
			text += "?"
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func dims(list []int) string {
	return "[" + strings.Join(texts(list, strconv.Itoa), ", ") + "]"
}

func texts[T any](list []T, one func(T) string) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = one(v)
	}
	return out
}

// numbers returns a text that lists ids. It truncates a long list.
func numbers(list []int) string {
	const most = 12
	parts := texts(list[:min(len(list), most)], strconv.Itoa)
	if len(list) > most {
		parts = append(parts, fmt.Sprintf("… (%d)", len(list)))
	}
	return strings.Join(parts, " ")
}

func (m *Method) tables(file string) []*table.Table {
	title := "Method " + name(m.Name)
	var arena int64
	for _, n := range m.ArenaBytes {
		arena += n
	}
	if arena > 0 {
		title += ": memory planned outside of the delegates: " + table.Memory(arena)
	}
	ins := index(m.Inputs)
	all := []*table.Table{
		list(title, ins,
			number("input", "", func(r *indexed[Port]) int64 { return int64(r.i) }),
			number("value", "", func(r *indexed[Port]) int64 { return int64(r.row.Value) }),
			column("type", func(r *indexed[Port]) string { return r.row.String() }),
			column("changes", func(r *indexed[Port]) string { return changing(r.row.Dims) })),
		list("", index(m.Outputs),
			number("output", "", func(r *indexed[Port]) int64 { return int64(r.i) }),
			number("value", "", func(r *indexed[Port]) int64 { return int64(r.row.Value) }),
			column("type", func(r *indexed[Port]) string { return r.row.String() }),
			column("changes", func(r *indexed[Port]) string { return changing(r.row.Dims) })),
		list("Instructions", index(m.Instructions),
			number("instruction", "", func(r *indexed[Instruction]) int64 { return int64(r.i) }),
			column("kind", func(r *indexed[Instruction]) string { return r.row.Op }),
			column("runs", func(r *indexed[Instruction]) string { return name(r.row.Target) }),
			column("values", func(r *indexed[Instruction]) string { return numbers(r.row.Args) })),
	}
	if len(m.Portable) > 0 {
		all = append(all, list("Portable operators, which ExecuTorch runs on the CPU", m.Portable,
			column("operator", func(o *Portable) string { return name(o.Name) }),
			number("calls", "", func(o *Portable) int64 { return int64(o.Calls) })))
	}
	if len(m.Delegates) > 0 {
		all = append(all, list("Delegates", index(m.Delegates),
			number("delegate", "", func(r *indexed[Delegate]) int64 { return int64(r.i) }),
			column("backend", func(r *indexed[Delegate]) string { return name(r.row.Backend) }),
			number("bytes", "B", func(r *indexed[Delegate]) int64 { return r.row.Bytes }),
			column("stored", func(r *indexed[Delegate]) string {
				if r.row.Inline {
					return "inline"
				}
				return "segment"
			}),
			column("contents", func(r *indexed[Delegate]) string { return r.row.Parts.String() }),
			column("options", func(r *indexed[Delegate]) string { return optionList(r.row.Options) }),
			column("same as", func(r *indexed[Delegate]) string { return r.row.Same }),
			column("unread", func(r *indexed[Delegate]) string { return r.row.Unread })))
	}
	for i := range m.Delegates {
		if g := m.Delegates[i].Graph; g != nil {
			all = append(all, g.tables(file, fmt.Sprintf("%s, delegate %d", name(m.Name), i), m.Plan)...)
		}
	}
	return all
}

// String returns a summary of the parts of a delegate, or "" for a nil Parts.
func (p *Parts) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s: graph %s, constants %s", p.Header, table.Memory(p.GraphBytes),
		table.Memory(p.ConstantBytes))
}

// changing returns a text that states which dims change from run to run.
func changing(dims []Dim) string {
	var known, unknown []string
	for i, d := range dims {
		switch d.Change {
		case vulkan.Dynamic:
			known = append(known, "dim "+strconv.Itoa(i))
		case vulkan.Unknown:
			unknown = append(unknown, "dim "+strconv.Itoa(i))
		}
	}
	switch {
	case len(unknown) == 0:
		return strings.Join(known, ", ")
	case len(known) == 0:
		return "some of " + strings.Join(unknown, ", ") + " (the file does not say which)"
	}
	return strings.Join(known, ", ") + ", perhaps " + strings.Join(unknown, ", ")
}

func optionList(options []Option) string {
	return strings.Join(texts(options, func(o Option) string { return name(o.Key) + "=" + o.Value }), " ")
}

// tables returns the tables of a Vulkan delegate. `file` is the path of the program, `of` is the name of the
// delegate in the title, and `plan` is gpuscope's plan or nil.
func (g *Graph) tables(file, of string, plan *Plan) []*table.Table {
	all := []*table.Table{list(g.title(of), index(g.Operators),
		number("operator", "", func(r *indexed[Operator]) int64 { return int64(r.i) }),
		number("id", "", func(r *indexed[Operator]) int64 { return int64(r.row.ID) }),
		column("name", func(r *indexed[Operator]) string { return name(r.row.Name) }),
		column("arguments", func(r *indexed[Operator]) string { return g.arguments(r.row) }),
		column("output", func(r *indexed[Operator]) string { return g.output(r.row) }))}
	if len(g.SymInts) > 0 {
		all = append(all, list("SymInts: integers that change from run to run", g.SymInts,
			number("symint", "", func(s *SymInt) int64 { return int64(s.ID) }),
			column("comes from", func(s *SymInt) string { return name(s.Source) }),
			column("of inputs", func(s *SymInt) string { return numbers(s.Inputs) }),
			column("written by", func(s *SymInt) string { return written(s.Writer) }),
			column("read by", func(s *SymInt) string { return numbers(s.Readers) })))
	}
	values := map[int]*Value{}
	for i := range g.Values {
		values[g.Values[i].ID] = &g.Values[i]
	}
	if len(g.Constants) > 0 {
		all = append(all, list(g.constantsTitle(), g.Constants,
			number("constant", "", func(c *Constant) int64 { return int64(c.ID) }),
			number("bytes", "B", func(c *Constant) int64 { return c.Bytes }),
			column("tensors", func(c *Constant) string { return tensors(c.Values, values) }),
			column("read by", func(c *Constant) string { return g.readers(c.Readers) }),
			column("shared with", func(c *Constant) string { return cut(c.Shared) }),
			column("stored", func(c *Constant) string { return c.stored(file) })))
	}
	var state []Value
	for _, v := range g.Values {
		if v.Role == State {
			state = append(state, v)
		}
	}
	if len(state) > 0 {
		all = append(all, list(
			"Mutable buffers: operators write them, and their contents are kept between runs", state,
			number("value", "", func(v *Value) int64 { return int64(v.ID) }),
			column("type", func(v *Value) string { return v.Type + " " + dims(v.Dims) }),
			number("bytes", "B", func(v *Value) int64 { return v.Bytes }),
			column("begins as constant", func(v *Value) string { return strconv.Itoa(*v.Constant) }),
			column("written by", func(v *Value) string { return g.readers(v.Writers) })))
	}
	if len(g.Objects) > 0 {
		all = append(all, list(g.planTitle(), g.Objects,
			number("object", "", func(o *Object) int64 { return int64(o.ID) }),
			number("bytes", "B", func(o *Object) int64 { return o.Bytes }),
			column("values, in order of use", func(o *Object) string { return numbers(o.Values) })))
	}
	all = append(all, plan.tables()...)
	ours := plan.memory()
	return append(all, list("Tensors of the delegate", g.Values,
		number("value", "", func(v *Value) int64 { return int64(v.ID) }),
		column("role", func(v *Value) string { return string(v.Role) }),
		column("type", func(v *Value) string { return v.Type + " " + dims(v.Dims) }),
		number("bytes", "B", func(v *Value) int64 { return v.Bytes }),
		column("memory", (*Value).memory),
		column("in gpuscope", func(v *Value) string { return ours[v.ID] }),
		column("written by", func(v *Value) string { return numbers(v.Writers) }),
		column("read by", func(v *Value) string { return numbers(v.Readers) })))
}

func (g *Graph) title(of string) string {
	kinds := map[string]int{}
	for i := range g.Operators {
		kinds[g.Operators[i].Name]++
	}
	return fmt.Sprintf("%s: %s of %s, inputs %s, outputs %s", of, table.Plural(len(g.Operators), "operator"),
		table.Plural(len(kinds), "kind"), numbers(g.Inputs), numbers(g.Outputs))
}

func (g *Graph) constantsTitle() string {
	type place struct {
		file string
		at   int64
	}
	var total, stored int64
	seen := map[place]bool{}
	for i := range g.Constants {
		c := &g.Constants[i]
		if total += c.Bytes; !seen[place{c.File, c.Offset}] {
			seen[place{c.File, c.Offset}] = true
			stored += c.Bytes
		}
	}
	text := "Constants: " + table.Memory(total)
	if stored < total {
		text += ", but only " + table.Memory(stored) + " in the file because identical constants are stored once"
	}
	return text
}

// planTitle returns the title of the table of memory objects. It compares the memory of the exporter's plan
// with the memory that the tensors would need without sharing.
func (g *Graph) planTitle() string {
	var shared, single, own int64
	for i := range g.Objects {
		shared += g.Objects[i].Bytes
	}
	for i := range g.Values {
		switch v := &g.Values[i]; {
		case v.Constant != nil:
		case v.Object != nil:
			single += v.Bytes
		default:
			own += v.Bytes
		}
	}
	text := fmt.Sprintf("The exporter planned %s in %s, shared by tensors of %s in total",
		table.Memory(shared), table.Plural(len(g.Objects), "object"), table.Memory(single))
	if own > 0 {
		text += ", and " + table.Memory(own) + " for tensors that share nothing"
	}
	return text
}

func (g *Graph) arguments(op *Operator) string {
	const most = 32
	var parts []string
	for _, a := range op.Args[:min(max(len(op.Args)-1, 0), most)] {
		parts = append(parts, a.Name+"="+a.Text)
	}
	return printable.Short(strings.Join(parts, " "), 400)
}

func (g *Graph) output(op *Operator) string {
	if len(op.Args) == 0 {
		return ""
	}
	return printable.Short(op.Args[len(op.Args)-1].Text, 120)
}

func written(op int) string {
	if op < 0 {
		return ""
	}
	return strconv.Itoa(op)
}

// readers returns a text that lists operators, each by its index and its name.
func (g *Graph) readers(ops []int) string {
	return cut(texts(ops, func(i int) string {
		return strconv.Itoa(i) + " " + plain(g.Operators[i].Name)
	}))
}

// plain returns the name of an operator without its namespace and overload.
func plain(op string) string {
	parts := strings.Split(op, ".")
	if len(parts) < 3 {
		return name(parts[0])
	}
	return name(strings.Join(parts[1:len(parts)-1], "."))
}

func cut(list []string) string {
	const most = 4
	text := strings.Join(list[:min(len(list), most)], ", ")
	if len(list) > most {
		text += fmt.Sprintf(", … (%d)", len(list))
	}
	return text
}

func tensors(ids []int, values map[int]*Value) string {
	return cut(texts(ids, func(id int) string {
		v := values[id]
		return fmt.Sprintf("%d %s %s", id, v.Type, dims(v.Dims))
	}))
}

// stored returns a text that states where the bytes of a constant are stored. If they are in the program
// file, whose path is `program`, the text does not name the file.
func (c *Constant) stored(program string) string {
	key := " as " + printable.Short(c.Key, 16)
	switch {
	case c.Key == "":
		return fmt.Sprintf("inline at %d", c.Offset)
	case c.File == "":
		return "missing" + key
	case c.File == program:
		return fmt.Sprintf("at %d%s", c.Offset, key)
	}
	return fmt.Sprintf("%s at %d%s", printable.Short(filepath.Base(c.File), 60), c.Offset, key)
}

func (v *Value) memory() string {
	switch {
	case v.Constant != nil:
		return "constant " + strconv.Itoa(*v.Constant)
	case v.Object != nil:
		return "object " + strconv.Itoa(*v.Object)
	}
	return "its own"
}
