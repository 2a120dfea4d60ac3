package fleet

import (
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"gpuscope/trace"
)

// The keys of the metadata of each Parquet file.
const (
	schemaKey = "gpuscope.schema" // has the value Schema
	tableKey  = "gpuscope.table"  // dispatches or steps
)

const (
	batchRows = 256    // rows that are passed to the writer together
	groupRows = 100000 // rows of a row group, which the writer keeps in memory in compressed form
)

// Parquet writes the two tables of a trace to a folder. Each table is a folder that is partitioned by run, so
// that the folders of many traces can be copied into one:
//
//	dispatches/run=ID/part-0.parquet
//	steps/run=ID/part-0.parquet
func Parquet(dir string, t *trace.Trace) error {
	r := newRun(t)
	for _, table := range []struct {
		name    string
		columns []column
		rows    iter.Seq[*row]
	}{
		{"dispatches", dispatchColumns, r.dispatches()},
		{"steps", stepColumns, r.steps()},
	} {
		in := filepath.Join(dir, table.name, "run="+r.id)
		if err := os.MkdirAll(in, 0o755); err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(in, "part-0.parquet"))
		if err != nil {
			return err
		}
		err = writeParquet(f, table.name, t.Producer.Version, table.columns, table.rows)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// writeParquet writes a table. It keeps only a part of the rows in memory.
func writeParquet(w io.Writer, table, version string, columns []column, rows iter.Seq[*row]) error {
	out := parquet.NewWriter(w, parquet.NewSchema(table, newNode(columns)),
		parquet.Compression(&parquet.Snappy),
		parquet.KeyValueMetadata(schemaKey, Schema), parquet.KeyValueMetadata(tableKey, table),
		parquet.CreatedBy("gpuscope", version, ""), parquet.MaxRowsPerRowGroup(groupRows))
	batch := make([]parquet.Row, 0, batchRows)
	values := make([]parquet.Value, batchRows*len(columns))
	flush := func() error {
		_, err := out.WriteRows(batch)
		batch = batch[:0]
		return err
	}
	for r := range rows {
		into := values[len(batch)*len(columns):][:len(columns):len(columns)]
		for i := range columns {
			into[i] = columns[i].parquet(r, i)
		}
		if batch = append(batch, into); len(batch) == batchRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return out.Close()
}

// parquet returns the value of the column in a row. number is the index of the column in the table.
func (c *column) parquet(r *row, number int) parquet.Value {
	v := c.of(r)
	var to parquet.Value
	switch {
	case !v.known:
		return parquet.NullValue().Level(0, 0, number)
	case c.kind == text:
		to = parquet.ByteArrayValue([]byte(v.s))
	case c.kind == float:
		to = parquet.DoubleValue(v.f)
	case c.kind == truth:
		to = parquet.BooleanValue(v.n != 0)
	default:
		to = parquet.Int64Value(v.n)
	}
	if c.null {
		return to.Level(0, 1, number)
	}
	return to.Level(0, 0, number)
}

// node is the root of a schema. It keeps the order of the columns, which a parquet.Group sorts by name.
type node struct {
	parquet.Group
	fields []parquet.Field
}

func (n *node) Fields() []parquet.Field { return n.fields }

// field is a column in a schema.
type field struct {
	parquet.Node
	name string
}

func (f *field) Name() string { return f.name }

// Value is not used, because the rows are written as values and not as Go structs.
func (f *field) Value(base reflect.Value) reflect.Value { return base }

func newNode(columns []column) *node {
	n := &node{Group: parquet.Group{}}
	for _, c := range columns {
		var of parquet.Node
		switch c.kind {
		case text:
			of = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		case float:
			of = parquet.Leaf(parquet.DoubleType)
		case truth:
			of = parquet.Leaf(parquet.BooleanType)
		case instant:
			of = parquet.Timestamp(parquet.Microsecond)
		default:
			of = parquet.Leaf(parquet.Int64Type)
		}
		if c.null {
			of = parquet.Optional(of)
		}
		n.Group[c.name] = of
		n.fields = append(n.fields, &field{of, c.name})
	}
	return n
}
