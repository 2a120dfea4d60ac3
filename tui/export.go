package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// exporter writes traces and tables to files, and text to the clipboard.
type exporter struct {
	*selection
	texts *overlays
	opts  *Options
	width func() int // of the screen, in cells
}

// askExport asks where the trace is to go.
func (ex *exporter) askExport() {
	q := &question{label: "export to", take: ex.export}
	q.line.Suggest("gpuscope-" + widget.Now().Format("20060102-150405") + ".json.gz")
	ex.ask(q)
}

// askExportTable asks where the table on the screen is to go: that one, whatever a click on a tab shows by
// the time that its file has a name.
func (ex *exporter) askExportTable() {
	pane := ex.table()
	q := &question{
		label: "table to " + strings.Join(table.Suffixes(), " "),
		take:  func(path string) { ex.exportTable(pane, path) },
	}
	q.line.Suggest(free(fileName(pane, ex.view().Takes())))
	ex.ask(q)
}

// fileName is what a file with the table is called: by the steps that the table is of where a view takes so
// many, which may be one of those that are spoken of, or none.
func fileName(p *widget.TablePane, takes report.Takes) string {
	name, s := p.Table.Name, view.MadeAt(p)
	if s.Step >= 0 && (takes == report.AnySteps || takes == report.OneStep) {
		name += "-" + strings.ReplaceAll(s.Of(takes).Name, "–", "-")
	}
	return name + ".csv"
}

// absent refuses to write over anything: a slip of the finger must not cost a model.
func absent(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists; choose another name", path)
	}
	return nil
}

// free is a name that no file has yet, made from one: "a.csv", "a-2.csv".
func free(name string) string {
	suffix := filepath.Ext(name)
	bare, found := strings.TrimSuffix(name, suffix), name
	for i := 2; absent(found) != nil; i++ {
		found = fmt.Sprintf("%s-%d%s", bare, i, suffix)
	}
	return found
}

// whole is a path as it is found from anywhere.
func whole(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// export writes the trace as it is now.
func (ex *exporter) export(path string) {
	if path = command.Expand(path); path == "" {
		return
	}
	t := ex.index.Trace
	ex.later("export", "writing "+path, func(context.Context) (string, error) {
		err := absent(path)
		if err == nil {
			err = trace.WriteFile(path, t)
		}
		if err != nil {
			return "", fmt.Errorf("export: %w", err)
		}
		return fmt.Sprintf("wrote %s: %s, %s", whole(path), widget.Plural(len(t.Steps), "step"),
			widget.Plural(len(t.Plans), "plan")), nil
	})
}

// exportTable writes a table of the screen as it is filtered, folded, sorted and scoped.
func (ex *exporter) exportTable(pane *widget.TablePane, path string) {
	if path = command.Expand(path); path == "" {
		return
	}
	l := pane.Listing
	said := table.Title(pane.Own(1 << 10)...)
	screen := ex.width()
	ex.later("export", "writing "+path, func(ctx context.Context) (string, error) {
		format, err := table.FormatOf(path)
		if err != nil {
			return "", fmt.Errorf("export: %w", err)
		}
		t := l.Exported()
		t.Title = append(slices.Clip(t.Title), said)
		var out bytes.Buffer
		if err := t.Print(ctx, &out, format, l.Rows, screen); err != nil {
			return "", fmt.Errorf("export: %w", err)
		}
		if err := create(path, out.Bytes()); err != nil {
			return "", fmt.Errorf("export: %w", err)
		}
		return fmt.Sprintf("wrote %s: %s", whole(path), widget.Plural(len(l.Rows), "row")), nil
	})
}

// create writes a file that is not there yet. What could not be written whole is taken away.
func create(path string, data []byte) error {
	if err := absent(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}
