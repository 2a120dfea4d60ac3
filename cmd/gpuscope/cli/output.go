package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muesli/termenv"
	"github.com/natefinch/atomic"

	"gpuscope/internal/printable"
	"gpuscope/trace"
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

// PrintTable prints a table as text with all its columns. Rows that are folded by default stay folded.
func PrintTable(ctx context.Context, w io.Writer, t *table.Table) error {
	rows, err := t.Select(ctx, table.Selection{})
	if err != nil {
		return err
	}
	return t.Print(ctx, w, "text", rows, 0)
}

// WriteFile writes a file. An existing file is replaced when the new one is complete, so an error leaves it
// unchanged. Pipes and devices are written directly.
func WriteFile(path string, data []byte) error {
	mode := os.FileMode(0o644)
	switch old, err := os.Stat(path); {
	case err == nil && (!old.Mode().IsRegular() || strings.HasPrefix(path, "/dev/") ||
		strings.HasPrefix(path, "/proc/")):
		return os.WriteFile(path, data, mode)
	case err == nil:
		mode = old.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	partial := path + ".partial-" + strconv.Itoa(os.Getpid())
	err := os.WriteFile(partial, data, mode)
	if err == nil {
		err = atomic.ReplaceFile(partial, path)
	}
	if err == nil {
		return nil
	}
	_ = os.Remove(partial) // it may not exist
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		failed.Path = path
	}
	return err
}

// CheckOutput returns a UsageError if writing to the path `out` would overwrite one of the files that the
// command reads: a file in `inputs` under this or another name, a file other than a trace in a folder of
// `inputs`, such as that of a model, or a folder that contains an input. A command calls CheckOutput before
// it writes anything. Pipes, devices and files that do not exist are accepted.
func CheckOutput(out string, inputs ...string) error {
	to, err := os.Stat(out)
	if err != nil || !to.IsDir() && !to.Mode().IsRegular() {
		return nil
	}
	for _, in := range inputs {
		from, err := os.Stat(in)
		switch {
		case err != nil: // the command says so when it opens the file
		case from.IsDir() && contains(in, to) && !trace.HasSchema(out), os.SameFile(from, to):
			return Usagef("output %s: the command reads this file as its input %s. Choose another name",
				printable.Short(out, 120), printable.Short(in, 120))
		case to.IsDir() && above(in, to):
			return Usagef("output %s: this folder contains the input %s. Choose another name",
				printable.Short(out, 120), printable.Short(in, 120))
		}
	}
	return nil
}

// contains reports whether a file is in the folder `dir`, under any name.
func contains(dir string, file os.FileInfo) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		info, err := os.Stat(filepath.Join(dir, e.Name())) // follows a link, as in the cache of Hugging Face
		return err == nil && os.SameFile(info, file)
	})
}

// above reports whether the file at a path is in the folder `dir` or in a folder below it.
func above(path string, dir os.FileInfo) bool {
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	for err == nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		if info, err := os.Stat(path); err == nil && os.SameFile(info, dir) {
			return true
		}
	}
	return false
}

// PrintStyled prints a line of text. On a terminal it uses the style `sgr`, the parameters of an SGR escape
// sequence, unless the user asked for no colors (see https://no-color.org).
func (e *Env) PrintStyled(line, sgr string) error {
	out, ok := e.Stdout.(*printable.Writer)
	if !ok || sgr == "" || termenv.EnvNoColor() || os.Getenv("TERM") == "dumb" {
		_, err := fmt.Fprintln(e.Stdout, printable.Clean(line))
		return err
	}
	return out.WriteStyled("\x1b[" + sgr + "m" + printable.Clean(line) + "\x1b[0m")
}
