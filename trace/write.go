package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// Write writes a trace as one JSON object, with a line for each plan and each step.
func Write(w io.Writer, t *Trace) error {
	out := bufio.NewWriterSize(w, 1<<16)
	head := *t
	head.Plans, head.Steps = nil, nil
	b, err := encodeRecord(&head, t.Unknown)
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	out.Write(bytes.TrimSuffix(fieldLines(b), []byte("}"))) // a bufio.Writer keeps its first error for Flush
	out.WriteString(",\n\"plans\":[")
	for i := range t.Plans {
		b, err := encodeRecord(&t.Plans[i], t.Plans[i].Unknown)
		if err != nil {
			return fmt.Errorf("write trace: plan %d: %w", i, err)
		}
		writeElement(out, i, b)
	}
	out.WriteString("],\n\"steps\":[")
	for i := range t.Steps {
		b, err := encodeRecord(&t.Steps[i], t.Steps[i].Unknown)
		if err != nil {
			return fmt.Errorf("write trace: step %d: %w", t.Steps[i].Index, err)
		}
		writeElement(out, i, b)
	}
	out.WriteString("]}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// fieldLines puts every field of an object on a line of its own.
func fieldLines(object []byte) []byte {
	out := make([]byte, 0, len(object)+64)
	depth, quoted := 0, false
	for i, c := range object {
		out = append(out, c)
		switch {
		case c == '"' && !escaped(object[:i]):
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			out = append(out, '\n')
		}
	}
	return out
}

// escaped says that what follows is escaped: an odd number of backslashes stands before it.
func escaped(b []byte) bool { return (len(b)-len(bytes.TrimRight(b, "\\")))%2 == 1 }

func writeElement(out *bufio.Writer, i int, b []byte) {
	if i > 0 {
		out.WriteByte(',')
	}
	out.WriteByte('\n')
	out.Write(b)
}

// encodeRecord is one line of JSON without its newline, with what a reader did not know put back in its
// place.
func encodeRecord(v any, unknown *Unknown) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // WGSL is full of < and >
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if unknown == nil {
		return line, nil
	}
	return unknown.putBack(line)
}

// WriteFile writes a trace to a file: gzipped where the name ends in .gz, as a stream of lines where it ends
// in .jsonl before that. The file is there whole or not at all.
func WriteFile(path string, t *Trace) error {
	f, err := createFile(path)
	if err != nil {
		return err
	}
	defer f.cancel()
	write := Write
	if isStream(path) {
		write = WriteStream
	}
	if err := write(f, t); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.commit()
}

// isStream says by its name that a file is a stream of lines.
func isStream(path string) bool { return strings.HasSuffix(strings.TrimSuffix(path, ".gz"), ".jsonl") }

// pendingFile is a file that takes its place when it is whole.
type pendingFile struct {
	io.Writer
	path   string
	zip    *gzip.Writer // nil: not compressed
	file   *renameio.PendingFile
	direct *os.File // instead of file, where the path is a device or a pipe
}

// createFile opens a file for writing under another name in its folder. A path that cannot be written is
// refused here, before there is anything to lose.
func createFile(path string) (*pendingFile, error) {
	p := &pendingFile{path: path}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("write trace %s: it is a folder; give the name of a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		p.direct, err = os.OpenFile(path, os.O_WRONLY, 0)
		p.Writer = p.direct
	default:
		dir := filepath.Dir(path)
		if d, err := os.Stat(dir); err != nil || !d.IsDir() {
			return nil, fmt.Errorf("write trace %s: there is no folder %s", path, dir)
		}
		p.file,
			err = renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithPermissions(0o644),
			renameio.WithExistingPermissions())
		p.Writer = p.file
	}
	if err != nil {
		return nil, fmt.Errorf("write trace %s: %w", path, err)
	}
	if strings.HasSuffix(path, ".gz") {
		p.zip = gzip.NewWriter(p.Writer)
		p.Writer = p.zip
	}
	return p, nil
}

// CheckWritable says why a trace cannot be written to a path, before there is one to lose.
func CheckWritable(path string) error {
	f, err := createFile(path)
	if err == nil {
		f.cancel()
	}
	return err
}

// flush hands everything written so far to the system.
func (p *pendingFile) flush() error {
	if p.zip != nil {
		return p.zip.Flush()
	}
	return nil
}

// commit puts the file in its place.
func (p *pendingFile) commit() error {
	if p.zip != nil {
		if err := p.zip.Close(); err != nil {
			return fmt.Errorf("write trace %s: %w", p.path, err)
		}
	}
	var err error
	if p.direct != nil {
		err = p.direct.Close()
	} else {
		err = p.file.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("write trace %s: %w", p.path, err)
	}
	return nil
}

// cancel removes what was written; after commit it does nothing.
func (p *pendingFile) cancel() {
	if p.direct != nil {
		p.direct.Close()
		return
	}
	p.file.Cleanup()
}
