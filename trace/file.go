package trace

import (
	"compress/gzip"
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

	"gpuscope/internal/printable"
)

// A file that is being written stands beside the one that it is for, as NAME.partial, and takes its name when
// it is whole: natefinch/atomic replaces a file whole or not at all, on Windows too. If the program is killed
// it stays, under a name that a person recognises, and can be opened. (google/renameio, which makes that file
// as well, does not let its name be chosen.) What is no regular file, a pipe or a device is written directly.

const partialSuffix = ".partial"

// pendingFile is a file on its way.
type pendingFile struct {
	io.Writer
	path   string   // as it was given
	target string   // which file that is, with all links followed
	file   *os.File // NAME.partial, or the pipe or device itself
	direct bool
	kept   bool         // it is not to be removed any more
	zip    *gzip.Writer // nil: not compressed
}

// place is where a trace is to be written, and how.
type place struct {
	path   string // as it was given
	form   Format
	zipped bool
	pipe   bool        // a pipe or a device
	old    fs.FileInfo // of what is there, nil for nothing
}

// ErrFolder is the error of a path that is a folder.
var ErrFolder = errors.New("is a folder: give the name of a file in it")

// ErrNoReader is the error of a pipe that nothing reads.
var ErrNoReader = errors.New("nothing reads this pipe: start its reader first")

// placeOf refuses what names no place for a trace. A pipe needs no form in its name: it gets lines.
func placeOf(path string) (place, error) {
	to := place{path: path}
	old, err := os.Stat(path)
	switch {
	case path == "":
		return to, errors.New(`write trace "": give the name of a file`)
	case err == nil && old.IsDir():
		return to, writeError(path, ErrFolder)
	case err == nil:
		to.old, to.pipe = old, isPipe(path, old)
	case !errors.Is(err, fs.ErrNotExist):
		return to, writeError(path, err)
	}
	to.form, to.zipped, err = FormatOf(path)
	if to.pipe && filepath.Ext(path) != to.form.Suffix {
		to.form = lineFormat()
		return to, nil
	}
	if err != nil {
		return to, fmt.Errorf("write trace %w", err)
	}
	return to, nil
}

// create begins to write a file. A path that cannot be written is refused here, before there is anything to
// lose.
func (to place) create(zipped bool) (p *pendingFile, err error) {
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
	if zipped {
		p.zip = gzip.NewWriter(p.Writer)
		p.Writer = p.zip
	}
	return p, nil
}

// isPipe reports that what is under a path is written directly: a pipe, a device, or a descriptor of a
// process, which may be a regular file and still cannot be replaced, since who opened it would read the old
// one.
func isPipe(path string, info fs.FileInfo) bool {
	descriptor := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	return !info.IsDir() && (!info.Mode().IsRegular() ||
		slices.ContainsFunc([]string{"/dev/fd/", "/dev/std", "/proc/"}, descriptor))
}

// openDirect opens a pipe or a device. A pipe that nobody reads is refused: to wait for a reader may take for
// ever.
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

// openBeside opens NAME.partial, or the next name of its kind that is not there.
func (p *pendingFile) openBeside(old fs.FileInfo) (err error) {
	p.target = followLinks(p.path)
	dir := filepath.Dir(p.target)
	if d, err := os.Stat(dir); err != nil || !d.IsDir() {
		return fmt.Errorf("no folder %s: %w", dir, fs.ErrNotExist)
	}
	mode := fs.FileMode(0o644)
	if old != nil {
		mode = old.Mode().Perm()
		f, err := os.OpenFile(p.target, os.O_WRONLY, 0) // may it be replaced?
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

// followLinks is the file that a path names, which need not be there.
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

// writeError says which file could not be written.
func writeError(path string, err error) error { return fileError("write", path, err) }

// fileError says what could not be done with which file. What the file system says of a path, which may be
// that of NAME.partial, is left out.
func fileError(do, path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s trace %s: %w", do, printable.Short(path, 160), err)
}

// closedPipe says in words that a pipe is closed: the error of the system means elsewhere that whoever read
// the results has seen enough.
type closedPipe struct{ w io.Writer }

func (r closedPipe) Write(b []byte) (int, error) {
	n, err := r.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = errors.New("the pipe's reader has exited")
	}
	return n, err
}

// flush hands everything written so far to the system.
func (p *pendingFile) flush() error {
	if p.zip != nil {
		return p.zip.Flush()
	}
	return nil
}

// commit puts the file in its place. After an error it is to be kept or cancelled.
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

// keep leaves the file as it is, under the name that it has.
func (p *pendingFile) keep() {
	if p.zip != nil {
		_ = p.zip.Close() // as much as there is room for
	}
	_ = p.file.Close()
	p.kept = true
}

// cancel removes what was written; after commit or keep it does nothing.
func (p *pendingFile) cancel() {
	if p.kept {
		return
	}
	_ = p.file.Close()
	if p.kept = true; !p.direct {
		os.Remove(p.file.Name())
	}
}

// expire makes writes fail after a time where they wait for who reads a pipe.
func (p *pendingFile) expire(t time.Time) {
	if p.direct {
		_ = p.file.SetWriteDeadline(t) // what has no deadline does not wait either
	}
}
