package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine/gpu"
	"gpuscope/internal/printable"
	"gpuscope/model"
	"gpuscope/model/arch"
	"gpuscope/trace/table"
)

// contents describes a model file, even if the model is not supported.
type contents struct {
	File     string        `json:"file"`
	Metadata []metadata    `json:"metadata"`
	Ends     []ending      `json:"ends"`
	Tensors  []tensorEntry `json:"tensors"`
	// Refused says why this version does not support the model. It is empty if the model is supported.
	Refused string `json:"refused,omitempty"`
	// Warnings is the result of model.Model.Warnings.
	Warnings []string `json:"warnings,omitempty"`
	// Ignored is the result of model.Model.Ignored.
	Ignored []ignored `json:"ignored,omitempty"`
}

// ignored is a metadata key that the program did not use, and the reason.
type ignored struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// metadata is a key-value pair of the file. Long values are cut.
type metadata struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// ending is a token that ends a text.
type ending struct {
	ID   int    `json:"id"`
	Text string `json:"text,omitempty"` // empty if the vocabulary lacks the token
	From string `json:"from"`           // the metadata key or file that names the token
}

type tensorEntry struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Dims  []int  `json:"dims"` // row-major: a matrix is [rows, cols]
	Bytes int64  `json:"bytes"`
	// NotYet reports that no operator supports the type.
	NotYet bool `json:"not_yet,omitempty"`
}

// printContents prints the content of a model file. `cannot` is the reason why the model cannot be planned,
// or nil if the caller knows none.
func (p *program) printContents(o *modelOptions, format *cli.Choice, cannot error) error {
	if format.Value == "dot" {
		return cli.Usagef("--metadata cannot be combined with --format dot: use text or json")
	}
	c, err := p.contents(o, cannot)
	if err != nil {
		return err
	}
	if format.Value == "json" {
		return cli.WriteJSON(p.Stdout, c)
	}
	return c.printText(p.Stdout)
}

// contents reads a model file. If `cannot` is nil, it plans the graph to find out whether the model is
// supported.
func (p *program) contents(o *modelOptions, cannot error) (c *contents, err error) {
	options, err := p.forModel(o)
	if err != nil {
		return nil, err
	}
	f, err := arch.OpenFile(options.Path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c = &contents{File: f.Name(), Metadata: []metadata{}, Ends: []ending{}, Tensors: []tensorEntry{}}
	for _, pair := range f.Metadata() {
		c.Metadata = append(c.Metadata, metadata(pair))
	}
	tokens, _ := f.Tokenizer() // model.Model.Warnings reports the error
	if options.Tokenizer != "" {
		tokens, _ = model.Vocabulary(options.Tokenizer)
	}
	for _, e := range tokens.Ends() {
		c.Ends = append(c.Ends, ending(e))
	}
	for _, t := range f.Tensors() {
		c.Tensors = append(c.Tensors, tensorEntry{
			Name: t.Name, Type: t.Type, Dims: t.Dims, Bytes: int64(t.Size), NotYet: !arch.Runs(t),
		})
	}
	if cannot == nil {
		cannot = c.plan(options)
	}
	if cannot != nil {
		c.Refused = cannot.Error()
	}
	return c, nil
}

// plan reads the model, collects its warnings, and plans it for the limits that every device has. If the
// model cannot be planned, plan returns an error with the reason.
func (c *contents) plan(o model.Options) error {
	m, err := model.Read(o)
	if err != nil {
		return err
	}
	c.Warnings = m.Warnings()
	for _, key := range m.Ignored() {
		c.Ignored = append(c.Ignored, ignored(key))
	}
	_, err = m.Plan(gpu.DefaultLimits())
	return errors.Join(err, m.Close())
}

func (c *contents) printText(w io.Writer) error {
	var b bytes.Buffer
	var total int64
	types := map[string]int64{}
	for _, t := range c.Tensors {
		total += t.Bytes
		types[t.Type] += t.Bytes
	}
	fmt.Fprintf(&b, "%s · %s in the metadata · %s, %s%s\n", printable.Clean(c.File),
		table.Plural(len(c.Metadata), "pair"), table.Plural(len(c.Tensors), "tensor"), table.Memory(total),
		prefixed(": ", memoryBy(types)))
	if c.Refused == "" {
		b.WriteString("supported by this version\n")
	} else {
		reason := printable.Short(c.Refused, longestReason)
		fmt.Fprintf(&b, notSupported+"%s\n", reason)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", printable.Short(w, longestReason))
	}
	for _, key := range c.Ignored {
		fmt.Fprintf(&b, "ignored: %s: %s\n", key.Key, printable.Short(key.Why, longestReason))
	}
	ctx := context.Background()
	for _, t := range []*table.Table{c.metadataTable(), c.endTable(), c.tensorTable()} {
		b.WriteByte('\n')
		if err := cli.PrintTable(ctx, &b, t); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// longestReason is the maximum length in characters of the reason why a file is not supported.
const longestReason = 400

// notSupported begins the line that says why a model is not supported.
const notSupported = "not supported by this version: "

// longestName is the maximum length in characters of a name in a table. Real names are shorter.
const longestName = 120

func (c *contents) metadataTable() *table.Table {
	of := table.ColumnsOf(c.Metadata)
	return table.New("metadata", []table.Column{
		of.Text(80, "key", "key", "",
			func(m *metadata) string { return printable.Short(m.Key, longestName) }),
		of.Text(80, "type", "type", "", func(m *metadata) string { return m.Type }),
		of.Text(80, "value", "value", "value of the metadata key; long values are shortened",
			func(m *metadata) string { return m.Value }),
	}, table.Flat(len(c.Metadata), func(i int) string { return c.Metadata[i].Key }))
}

func (c *contents) endTable() *table.Table {
	of := table.ColumnsOf(c.Ends)
	t := table.New("ends", []table.Column{
		of.Int(80, "id", "id", "", "token id", func(e *ending) int64 { return int64(e.ID) }),
		of.Text(80, "token", "token", "token as written in the vocabulary",
			func(e *ending) string { return printable.Short(e.Text, longestName) }),
		of.Text(80, "from", "source", "metadata key or file that names the end token",
			func(e *ending) string { return e.From }),
	}, table.Flat(len(c.Ends), func(i int) string { return strconv.Itoa(c.Ends[i].ID) }))
	t.Title = append(t.Title, table.Title(table.Say(0, "%s a text", table.Plural(len(c.Ends), "token")+" can end")))
	return t
}

func (c *contents) tensorTable() *table.Table {
	of := table.ColumnsOf(c.Tensors)
	return table.New("tensors", []table.Column{
		of.Text(80, "tensor", "tensor", "",
			func(t *tensorEntry) string { return printable.Short(t.Name, longestName) }),
		of.Text(80, "type", "type", "", func(t *tensorEntry) string { return t.Type }),
		of.Text(80, "dims", "dims", "dims in row-major order: a matrix is rows × cols",
			func(t *tensorEntry) string { return table.Shape(t.Dims) }),
		of.Int(80, "bytes", "bytes", "B", "", func(t *tensorEntry) int64 { return t.Bytes }),
		of.Words(80, "not_yet", "", "a note if no operator supports the type of this tensor; otherwise empty",
			func(t *tensorEntry) table.Cell {
				if t.NotYet {
					return table.Text("cannot be planned: type not supported yet")
				}
				return table.Cell{}
			}),
	}, table.Flat(len(c.Tensors), func(i int) string { return c.Tensors[i].Name }))
}
