package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// Format is a format of a file with a trace: one that can be read back (Forms), or an export that is only
// written. Recording, export and opening know the formats from their lists alone: to add one is to add a row.
type Format struct {
	Name   string // as people say it
	Doc    string
	Suffix string // of a file's name; any form may be gzipped, with .gz after its suffix
	// sniff says by its first bytes, decompressed and without white space before them, that a file may be of
	// this form. An export has neither sniff nor read.
	sniff func(start []byte) bool
	// read reads what has been decompressed. The file counts what it took for that: a reader allows for more
	// memory where the file is large.
	read  func(in io.Reader, raw *file) (*Trace, error)
	write func(io.Writer, *Trace) error
	// lines reports that the form is that of a recording: lines, written as the run goes on.
	lines bool
}

// Formats are all there are. A file whose name says nothing is read as the first that its beginning fits.
func Formats() []Format {
	return []Format{
		{
			Name: "json", Doc: "one JSON object", Suffix: ".json",
			sniff: beginsObject, read: readObjects, write: Write,
		},
		{
			Name: "jsonl", Doc: "JSON lines, written as the run goes on", Suffix: ".jsonl",
			sniff: beginsObject, read: readObjects, write: WriteStream, lines: true,
		},
	}
}

const gzSuffix = ".gz"

var (
	// ErrForm is wrapped by the error for a file name with no known suffix.
	ErrForm = errors.New("unknown trace format")
	// ErrWriteOnly is wrapped by the error for opening a file of a write-only format.
	ErrWriteOnly = errors.New("a write-only export cannot be opened again")
)

// Export is a write-only format, for other programs: it does not keep all of a trace.
type Export struct {
	Name   string
	Doc    string // what it is for and what it keeps, in a line
	Suffix string // of a file's name; .gz may follow
	Write  func(io.Writer, *Trace) error
}

var exports []Export

// RegisterExport adds a write-only format. Package trace/export does it before the program starts.
func RegisterExport(e Export) { exports = append(exports, e) }

// Exports are the write-only formats.
func Exports() []Export { return slices.Clone(exports) }

// Opens reports that a file of the format can be opened again.
func (f Format) Opens() bool { return f.read != nil }

// written are the formats that can be written: those of storage, then the exports.
func written() []Format {
	list := Formats()
	for _, e := range exports {
		list = append(list, Format{Name: e.Name, Doc: e.Doc, Suffix: e.Suffix, write: e.Write})
	}
	return list
}

// FileNames says how the name of a file to be written may end, and which of these cannot be opened again.
func FileNames() string {
	text := printable.Choice(Suffixes())
	var only []string
	for _, e := range exports {
		only = append(only, e.Suffix)
	}
	if only != nil {
		text += "; write-only, cannot be opened again: " + printable.Choice(only)
	}
	return text
}

// Suffixes are the endings of file names that can be opened again.
func Suffixes() []string {
	var list []string
	for _, f := range Formats() {
		list = append(list, f.Suffix, f.Suffix+gzSuffix)
	}
	return list
}

// FormatOf is the format that a file's name says, storage or export, and whether it is gzipped. Without a
// suffix it is the first of Forms.
func FormatOf(path string) (f Format, zipped bool, err error) {
	name, zipped := strings.CutSuffix(strings.ToLower(filepath.Base(path)), gzSuffix)
	for _, row := range written() {
		if strings.HasSuffix(name, row.Suffix) && len(row.Suffix) > len(f.Suffix) {
			f = row
		}
	}
	switch {
	case f.Suffix != "":
		return f, zipped, nil
	case filepath.Ext(name) == "" && name != "-": // which is elsewhere standard output, and here no file
		return Formats()[0], zipped, nil
	}
	return f, zipped, fmt.Errorf("%s: %w: want %s", printable.Short(path, 120), ErrForm,
		strings.Join(Suffixes(), ", "))
}

// lineFormat is the form that can be written while a run goes on.
func lineFormat() Format {
	for _, f := range Formats() {
		if f.lines {
			return f
		}
	}
	panic("no trace format is written by lines")
}

// IsTrace says by its content that a file is a trace, and by its name where that ends in the suffix of a
// form. It looks at no more than its beginning, and into nothing but regular files: who opens a pipe takes
// away what another waits for.
func IsTrace(path string) bool {
	if f, _, err := FormatOf(path); err == nil && f.Opens() && strings.Contains(filepath.Base(path),
		f.Suffix) {
		return true
	}
	return sniffed(beginningOf(path)) != nil
}

// HasSchema says by its content alone that a file is a trace, whole or not.
func HasSchema(path string) bool {
	name, _, _ := strings.Cut(Schema, "/")
	return bytes.Contains(beginningOf(path), []byte(name))
}

// beginningOf is how a file begins; nil of what cannot be read, and of what is no regular file.
func beginningOf(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	in, _, err := decompressed(f)
	if err != nil {
		return nil
	}
	start, err := beginning(in)
	if err != nil {
		return nil
	}
	return start
}

// sniffed is the first form that a beginning fits, or nil.
func sniffed(start []byte) *Format {
	for _, f := range Formats() {
		if f.sniff(start) {
			return &f
		}
	}
	return nil
}

func beginsObject(start []byte) bool { return len(start) > 0 && start[0] == '{' }

// WriteFile writes a trace to a file in the form that its name says. The file is there whole or not at all.
func WriteFile(path string, t *Trace) error {
	to, err := placeOf(path)
	if err != nil {
		return err
	}
	f, err := to.create(to.zipped)
	if err != nil {
		return err
	}
	defer f.cancel()
	if err := to.form.write(f, t); err != nil {
		return writeError(path, err)
	}
	return f.commit()
}
