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

	"gpuscope/internal/compress"
	"gpuscope/internal/folder"
	"gpuscope/internal/printable"
)

// Format is a file format for traces. A storage format (see Formats) can be written and read. An export
// format can only be written. To add a format, add a row to the list of formats: the code that records,
// exports and opens traces uses this list.
type Format struct {
	Name   string // name shown to the user
	Doc    string
	Suffix string // suffix of the file name; that of a compression may follow
	// sniff reports whether a file may have this format. `start` is the beginning of the decompressed data
	// without white space. Exports have neither `sniff` nor `read`.
	sniff func(start []byte) bool
	// read reads decompressed data. raw counts the bytes that were read from the file before decompression,
	// because the memory limit grows with this number.
	read  func(in io.Reader, raw *file) (*Trace, error)
	write func(io.Writer, *Trace) error
	// writeFolder is set instead of write if the format is a folder of files.
	writeFolder func(dir string, t *Trace) error
	// lines reports whether a file of this format consists of lines, which can be written during the run.
	lines bool
}

// Formats returns the storage formats. If the name of a file does not show its format, the reader uses the
// first of these formats whose `sniff` accepts the beginning of the file.
func Formats() []Format {
	return []Format{
		{
			Name: "json", Doc: "one JSON object", Suffix: ".json",
			sniff: beginsObject, read: readObjects, write: Write,
		},
		{
			Name: "jsonl", Doc: "JSON lines, written during the run", Suffix: ".jsonl",
			sniff: beginsObject, read: readObjects, write: WriteStream, lines: true,
		},
	}
}

var (
	// ErrForm is wrapped by the error for a file name whose suffix is not known.
	ErrForm = errors.New("unknown trace format")
	// ErrWriteOnly is wrapped by the error for opening a file in a format that can only be written.
	ErrWriteOnly = errors.New("a write-only export cannot be opened again")
)

// Export is a write-only format for other programs. It keeps only a part of a trace.
type Export struct {
	Name   string
	Doc    string // in one line: what the format is for and what it keeps
	Suffix string // suffix of the file name; that of a compression may follow
	// Write writes the file. It is nil if the format is a folder. If Suffix ends in .gz, files of the format
	// are always gzipped. Write itself must not compress, because its caller does.
	Write func(io.Writer, *Trace) error
	// WriteFolder writes the files of a format that is a folder. dir is an empty folder, which is renamed
	// when WriteFolder is done. The names of the files in it must not begin with a dot.
	WriteFolder func(dir string, t *Trace) error
}

var exports []Export

// RegisterExport adds a write-only format to the list. Package trace/export calls it for each of its formats
// when the program starts.
func RegisterExport(e Export) { exports = append(exports, e) }

// Exports returns the write-only formats.
func Exports() []Export { return slices.Clone(exports) }

// Opens reports whether a file of the format can be opened again.
func (f Format) Opens() bool { return f.read != nil }

// gzipped reports whether files of the format are always gzipped.
func (f Format) gzipped() bool { return strings.HasSuffix(f.Suffix, compress.Gzip.Suffix) }

// begins reports whether a file can have this write-only format. The beginning of a JSON file shows that, and
// the other formats are known by their names alone.
func (f Format) begins(path string) bool {
	start := beginningOf(path)
	return len(start) > 0 && (!strings.HasSuffix(f.Suffix, ".json") || start[0] == '{' || start[0] == '[')
}

// Folder reports whether the format is a folder of files.
func (f Format) Folder() bool { return f.writeFolder != nil }

// Written returns all formats in which a trace can be written: first the storage formats, then the write-only
// ones.
func Written() []Format {
	list := Formats()
	for _, e := range exports {
		list = append(list, Format{
			Name: e.Name, Doc: e.Doc, Suffix: e.Suffix, write: e.Write, writeFolder: e.WriteFolder,
		})
	}
	return list
}

// FormatNamed returns the format with a name, which may be a write-only format.
func FormatNamed(name string) (Format, error) {
	var names []string
	for _, f := range Written() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("%q: %w; known: %s", printable.Short(name, 80), ErrForm,
		strings.Join(names, ", "))
}

// Storable returns, for a message, the suffixes of the formats that can be opened again.
func Storable() string {
	var formats, packed []string
	for _, f := range Formats() {
		formats = append(formats, f.Suffix)
	}
	for _, c := range compress.Methods {
		packed = append(packed, c.Suffix)
	}
	return printable.Choice(formats) + ", or either followed by " + printable.Choice(packed)
}

// FileNames returns, for a message, the suffixes that the name of an output file may have. It marks those of
// write-only formats. The text is short, because an error line that is too long is cut in the middle.
func FileNames() string {
	text := Storable()
	var only []string
	for _, e := range exports {
		only = append(only, e.Suffix)
	}
	if only != nil {
		text += "; write-only: " + printable.Choice(only)
	}
	return text
}

// Suffixes returns the file name suffixes of all formats that can be opened again.
func Suffixes() []string {
	var list []string
	for _, f := range Formats() {
		list = append(list, f.Suffix)
		for _, c := range compress.Methods {
			list = append(list, f.Suffix+c.Suffix)
		}
	}
	return list
}

// FormatOf returns the format that the name of a file selects, which may be a write-only format. A name
// without a suffix selects the first of Formats. `by` is the compression that the name selects, or nil.
func FormatOf(path string) (f Format, by *compress.Method, err error) {
	base := strings.ToLower(filepath.Base(path))
	name, by := compress.CutSuffix(base)
	for _, row := range Written() {
		in := name
		if row.gzipped() {
			in = base
		}
		if strings.HasSuffix(in, row.Suffix) && len(row.Suffix) > len(f.Suffix) {
			f = row
		}
	}
	switch {
	case f.Suffix != "":
		return f, by, nil
	case filepath.Ext(name) == "" && name != "-": // "-" is standard output, not a file name
		return Formats()[0], by, nil
	}
	return f, by, fmt.Errorf("%s: %w; known: %s", printable.Short(path, 80), ErrForm, FileNames())
}

// lineFormat returns the format that is written line by line during a run.
func lineFormat() Format {
	for _, f := range Formats() {
		if f.lines {
			return f
		}
	}
	panic("no trace format is written line by line")
}

// IsTrace reports whether a file is a trace. It looks at the suffix of the name, and if that does not decide,
// at the beginning of the content. It reads the content only of regular files, because reading from a pipe
// would take data that is meant for another reader.
func IsTrace(path string) bool {
	return HasTraceName(path) || sniffed(beginningOf(path)) != nil
}

// HasTraceName reports whether a file has the suffix of a trace format that can be opened.
func HasTraceName(path string) bool {
	f, _, err := FormatOf(path)
	return err == nil && f.Opens() && strings.Contains(filepath.Base(path), f.Suffix)
}

// HasSchema reports whether the beginning of a file contains the name of the trace schema. The rest of the
// trace may be missing.
func HasSchema(path string) bool {
	name, _, _ := strings.Cut(Schema, "/")
	return bytes.Contains(beginningOf(path), []byte(name))
}

// beginningOf returns the first bytes of a file. It returns nil if the file cannot be read or is not a
// regular file.
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
	in, _, err := compress.NewReader(f)
	if err != nil {
		return nil
	}
	start, err := beginning(in)
	if err != nil {
		return nil
	}
	return start
}

// sniffed returns the first format whose sniff accepts the beginning of a file, or nil if there is none.
func sniffed(start []byte) *Format {
	for _, f := range Formats() {
		if f.sniff(start) {
			return &f
		}
	}
	return nil
}

func beginsObject(start []byte) bool { return len(start) > 0 && start[0] == '{' }

// WriteFile writes a trace to a file, or to a folder if the format is one. The suffix of the name selects the
// format. If WriteFile fails, it removes the partly written file.
func WriteFile(path string, t *Trace) error {
	to, err := placeOf(path, nil)
	if err != nil {
		return err
	}
	return to.write(t)
}

// WriteFileAs writes a trace like WriteFile, but in a given format. The suffix of the file name then selects
// only the compression, if any.
func WriteFileAs(path string, f Format, t *Trace) error {
	to, err := placeOf(path, &f)
	if err != nil {
		return err
	}
	return to.write(t)
}

func (to place) write(t *Trace) error {
	if to.form.Folder() {
		err := folder.Write(to.folder(), to.form.Name, func(dir string) error {
			return to.form.writeFolder(dir, t)
		})
		if err != nil {
			return writeError(to.path, err)
		}
		return nil
	}
	f, err := to.create(to.by)
	if err != nil {
		return err
	}
	defer f.cancel()
	if err := to.form.write(f, t); err != nil {
		return writeError(to.path, err)
	}
	return f.commit()
}
