package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"gpuscope/trace/table"
)

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// PrintTable prints a table as text with all columns and the rows that are initially open.
func PrintTable(ctx context.Context, w io.Writer, t *table.Table) error {
	rows, err := t.Select(ctx, table.Selection{})
	if err != nil {
		return err
	}
	return t.Print(ctx, w, "text", rows, 0)
}
