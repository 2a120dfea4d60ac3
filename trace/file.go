package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/natefinch/atomic"

	"gpuscope/internal/compress"
	"gpuscope/internal/folder"
	"gpuscope/internal/printable"
)

// A trace is first written to a file named NAME.partial, next to its target. The complete file then replaces
// the target. The package natefinch/atomic makes this step atomic, on Windows too. If the program is killed,
// NAME.partial remains and can be opened. (google/renameio creates a temporary file too, but does not let the
// caller choose the name.) Pipes, devices and other special files are written directly.

const partialSuffix = ".partial"

// pendingFile is a file that is being written.
type pendingFile struct {
	io.Writer
	path   string   // path as the user wrote it
	target string   // file to be replaced, after following all links
	file   *os.File // NAME.partial, or directly the pipe or the device
	direct bool
	kept   bool            // cancel must not remove the file any more
	zip    compress.Writer // nil if the file is not compressed
}

// place says where a trace is written and in which format.
type place struct {
	path string // path as the user wrote it
	form Format
	by   *compress.Method // nil if the file is not compressed
	pipe bool             // the path is a pipe, a device or a file descriptor
	old  fs.FileInfo      // the file or folder that exists at the path; nil if there is none
}

// ErrFolder is the error if a trace is to be written to a file, but the path is an existing folder.
var ErrFolder = errors.New("is a folder, not a file: give the name of a file in it")

var (
	// ErrNotFolder is the error if a trace is to be written to a folder, but the path is a file or a pipe.
	ErrNotFolder = errors.New("a trace in this format is a folder, but a file or a pipe has this name: choose another name")
	// ErrPackedFolder is the error if a trace is to be written to a folder, but the name of the folder ends
	// in the suffix of a compression. It is returned together with ErrForm.
	ErrPackedFolder = errors.New("a trace in this format is a folder, which cannot be compressed: remove .gz or .zst")
)

// ErrNoReader is the error if a trace is to be written to a named pipe that no process has opened for
// reading.
var ErrNoReader = errors.New("no process reads this pipe: start its reader first")

// placeOf returns the place for a path, or an error if a trace cannot be written there. If form is nil, the
// suffix of the path selects the format. The name of a pipe needs no suffix: without one, the trace is
// written as lines.
func placeOf(path string, form *Format) (place, error) {
	to := place{path: path}
	old, err := os.Stat(path)
	switch {
	case path == "":
		return to, errors.New(`write trace: the file name is empty. Give the name of a file`)
	case err == nil:
		to.old, to.pipe = old, isPipe(path, old)
	case !errors.Is(err, fs.ErrNotExist):
		return to, writeError(path, err)
	}
	to.form, to.by, err = FormatOf(path)
	switch {
	case form != nil:
		to.form, err = *form, nil
		if form.gzipped() {
			to.by = compress.Gzip
		}
	case to.pipe && (err != nil || !strings.HasSuffix(strings.ToLower(path), to.form.Suffix)):
		to.form = lineFormat()
		return to, nil
	case err != nil && to.old != nil && to.old.IsDir():
		return to, writeError(path, ErrFolder)
	case err != nil:
		return to, fmt.Errorf("write trace %w", err)
	}
	if to.form.Folder() {
		err = to.checkFolder()
	} else if to.old != nil && to.old.IsDir() {
		err = ErrFolder
	}
	if err != nil {
		return to, writeError(path, err)
	}
	return to, nil
}

// checkFolder returns an error if the folder cannot be written, or if it exists and must not be replaced.
func (to place) checkFolder() error {
	switch {
	case to.by != nil:
		return fmt.Errorf("%w: %w", ErrForm, ErrPackedFolder)
	case to.old == nil:
		return nil
	case !to.old.IsDir():
		return ErrNotFolder
	}
	return folder.Check(to.folder())
}

// folder returns the path of the folder after following all symbolic links, without a separator at its end.
func (to place) folder() string { return followLinks(filepath.Clean(to.path)) }

// create opens the file for writing. It is called before the run, so that a path that cannot be written is
// reported early.
func (to place) create(by *compress.Method) (p *pendingFile, err error) {
	p = &pendingFile{path: to.path, direct: to.pipe}
	if to.pipe {
		err = p.openDirect(to.old.Mode())
	} else {
		err = p.openBeside(to.old)
	}
	if err != nil {
		return nil, writeError(to.path, err)
	}
	p.Writer = p.file
	if p.direct {
		p.Writer = closedPipe{p.file}
	}
	if by != nil {
		if p.zip, err = by.NewWriter(p.Writer); err != nil {
			p.cancel()
			return nil, writeError(to.path, err)
		}
		p.Writer = p.zip
	}
	return p, nil
}

// isPipe reports whether a path must be written directly, not by replacing a file: it is a pipe, a device or
// a file descriptor of a process. A file descriptor can also stand for an ordinary file. If that file were
// replaced, the process that opened it would still see the old file.
func isPipe(path string, info fs.FileInfo) bool {
	descriptor := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	return !info.IsDir() && (!info.Mode().IsRegular() ||
		slices.ContainsFunc([]string{"/dev/fd/", "/dev/std", "/proc/"}, descriptor))
}

// openDirect opens a pipe or a device. If no process reads the pipe, it returns ErrNoReader, because waiting
// for a reader could take forever.
func (p *pendingFile) openDirect(mode fs.FileMode) (err error) {
	flags := os.O_WRONLY
	if mode&fs.ModeNamedPipe != 0 {
		flags |= syscall.O_NONBLOCK
	}
	p.file, err = os.OpenFile(p.path, flags, 0)
	if errors.Is(err, syscall.ENXIO) {
		return ErrNoReader
	}
	return err
}

// openBeside creates NAME.partial. If that name is taken, it tries NAME.partial-2 and so on.
func (p *pendingFile) openBeside(old fs.FileInfo) (err error) {
	p.target = followLinks(p.path)
	dir := filepath.Dir(p.target)
	if d, err := os.Stat(dir); err != nil || !d.IsDir() {
		return fmt.Errorf("no folder %s: %w", dir, fs.ErrNotExist)
	}
	mode := fs.FileMode(0o644)
	if old != nil {
		mode = old.Mode().Perm()
		f, err := os.OpenFile(p.target, os.O_WRONLY, 0) // only to check that the file may be replaced
		if err != nil {
			return err
		}
		f.Close()
	}
	for n := 1; ; n++ {
		name := p.target + partialSuffix
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		p.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) || n == 1000 {
			break
		}
	}
	if err == nil && old != nil {
		if err = p.file.Chmod(mode); err != nil {
			p.cancel()
		}
	}
	return err
}

// followLinks returns the file that a path refers to after following all symbolic links. The file need not
// exist.
func followLinks(path string) string {
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// writeError adds the operation and the path to an error.
func writeError(path string, err error) error { return fileError("write", path, err) }

// fileError adds the operation and the path to an error. It first removes the path that the operating system
// added, which may be NAME.partial.
func fileError(do, path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s trace %s: %w", do, printable.Short(path, 160), err)
}

// closedPipe writes to w and reports a closed pipe as a failure. It replaces the system's error, EPIPE,
// because the rest of the program does not treat EPIPE as a failure: a reader that closes standard output
// early has seen enough.
type closedPipe struct{ w io.Writer }

func (r closedPipe) Write(b []byte) (int, error) {
	n, err := r.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = errors.New("the pipe's reader has exited")
	}
	return n, err
}

// flush passes to the operating system all data that was written so far.
func (p *pendingFile) flush() error {
	if p.zip != nil {
		return p.zip.Flush()
	}
	return nil
}

// commit makes the complete file the target. If it fails, call keep or cancel.
func (p *pendingFile) commit() error {
	if err := p.settle(); err != nil {
		return writeError(p.path, err)
	}
	return nil
}

func (p *pendingFile) settle() error {
	if p.zip != nil {
		if err := p.zip.Close(); err != nil {
			return err
		}
	}
	if p.direct {
		return p.file.Close()
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	if err := atomic.ReplaceFile(p.file.Name(), p.target); err != nil {
		return err
	}
	p.kept = true
	return nil
}

// keep closes the file and leaves it under its current name.
func (p *pendingFile) keep() {
	if p.zip != nil {
		_ = p.zip.Close() // writes the remaining compressed data, unless the disk is full
	}
	_ = p.file.Close()
	p.kept = true
}

// cancel removes the partial file. It does nothing after commit or keep.
func (p *pendingFile) cancel() {
	if p.kept {
		return
	}
	_ = p.file.Close()
	if p.kept = true; !p.direct {
		os.Remove(p.file.Name())
	}
}

// expire sets a deadline for writes to a pipe. A write that still waits for the reader then fails.
func (p *pendingFile) expire(t time.Time) {
	if p.direct {
		_ = p.file.SetWriteDeadline(t) // if deadlines are not supported, writes do not block
	}
}
