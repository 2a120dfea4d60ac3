package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/redact"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// exporter writes traces and tables to files, and copies text to the clipboard.
type exporter struct {
	*selection
	texts *overlays
	opts  *Options
	width func() int // width of the screen, in cells
	// sizing estimates the size of the file of an export, for the suffix of its name.
	sizing widget.Task[string, int64]
}

// askExport asks for the file to write the trace to.
func (ex *exporter) askExport() {
	t := ex.index.Trace
	q := &question{hint: trace.FileNames(), take: ex.export}
	q.live = func(path string) {
		format := ""
		if f, by, err := trace.FormatOf(path); err == nil {
			format = f.Suffix
			if by != nil {
				format += by.Suffix
			}
		}
		if ex.sizing.Has && ex.sizing.Given == format {
			q.label = command.ExportTo(path, ex.sizing.Value)
			return
		}
		q.label = command.ExportTo(path, 0)
		ex.sizing.Want(ex.jobs, format, func(context.Context) (int64, error) {
			return command.ExportSize(path, t), nil
		}, func(int64) { q.live(q.line.Text()) })
	}
	q.complete = func() {
		q.line.Set(command.NextFormat(q.line.Text()))
		q.live(q.line.Text())
	}
	q.line.Suggest("gpuscope-" + widget.Now().Format("20060102-150405") + ".json.gz")
	ex.sizing.Clear(ex.jobs) // the trace may have grown
	q.live(q.line.Text())
	ex.ask(q)
}

// askExportTable asks for the file to write the current table to. It exports this table even if the user
// switches to another view while typing the file name.
func (ex *exporter) askExportTable() {
	pane := ex.table()
	q := &question{
		label: "table to " + strings.Join(table.Suffixes(), " "),
		take:  func(path string) { ex.exportTable(pane, path) },
	}
	q.line.Suggest(command.FreeName(fileName(pane, ex.view().Takes())))
	ex.ask(q)
}

// askWrite asks for a file and writes data to it.
func (ex *exporter) askWrite(label, name string, data []byte) {
	q := &question{label: label, take: func(path string) {
		if path = command.Expand(path); path == "" {
			return
		}
		ex.later("export", "writing "+path, func(context.Context) (string, error) {
			if err := create(path, data); err != nil {
				return "", fmt.Errorf("write: %w", err)
			}
			return fmt.Sprintf("wrote %s: %s", command.Absolute(path), widget.Plural(len(data), "byte")), nil
		})
	}}
	q.line.Suggest(command.FreeName(name))
	ex.ask(q)
}

// fileName suggests the name of the file for a table. If the table covers selected steps, the name includes
// the step number or the name of the selection.
func fileName(p *widget.TablePane, takes report.Takes) string {
	name, s := p.Table.Name, view.MadeAt(p)
	if s.Step >= 0 && (takes == report.AnySteps || takes == report.OneStep) {
		name += "-" + strings.ReplaceAll(s.Of(takes).Name, "–", "-")
	}
	return name + ".csv"
}

// export writes the trace to a file.
func (ex *exporter) export(path string) {
	if path = command.Expand(path); path == "" {
		return
	}
	t := ex.index.Trace
	if ex.opts.NoText {
		t = redact.Trace(t)
	}
	ex.later("export", "writing "+path, func(context.Context) (string, error) {
		err := command.Absent(path)
		if err == nil {
			err = trace.WriteFile(path, t)
		}
		if err != nil {
			return "", fmt.Errorf("export: %w", err)
		}
		return fmt.Sprintf("wrote%s %s: %s, %s", command.WriteOnly(path), command.Absolute(path),
			widget.Plural(len(t.Steps), "step"), widget.Plural(len(t.Plans), "plan")), nil
	})
}

// exportTable writes a table to a file with the filter, grouping, sort order and selection that the screen
// shows.
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
		return fmt.Sprintf("wrote %s: %s", command.Absolute(path), widget.Plural(len(l.Rows), "row")), nil
	})
}

// create writes data to a new file. It removes the file if the data could not be written completely.
func create(path string, data []byte) error {
	if err := command.Absent(path); err != nil {
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
