// Package folder writes folders of files that later calls may replace.
//
// A folder is written under the name NAME.partial and renamed when it is complete. A file in the folder,
// whose name is the constant List, lists the other files with their sizes. An existing folder is replaced
// only if every file in it is listed with its size. If somebody copies another file into the folder, the
// folder is no longer replaced, and none of its files are deleted.
package folder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
)

// List is the name of the list of files. Programs that read folders of tables ignore names that begin with an
// underscore.
const List = "_gpuscope_export"

// firstLine is the beginning of the first line of the list. A word for the contents of the folder follows.
const firstLine = "gpuscope export: "

// maxList is the largest size in bytes of a list that is read.
const maxList = 1 << 20

// ErrForeign is the error if the folder to be replaced has contents that Write has not written.
var ErrForeign = errors.New("choose another name or move the folder away, " +
	"because it has contents that this program did not write")

// Check returns an error if a folder exists and must not be replaced.
func Check(target string) error {
	_, err := written(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Write calls the function `write`, which puts files into an empty folder, and then moves the folder to
// `target`. The parent of `target` must exist. The list contains `what`, a word for the contents of the
// folder. If `target` exists, it is replaced when the new folder is complete. If Write fails, it removes
// what it has written.
func Write(target, what string, write func(dir string) error) error {
	above := filepath.Dir(target)
	if d, err := os.Stat(above); err != nil || !d.IsDir() {
		return fmt.Errorf("the folder %s does not exist: %w", above, fs.ErrNotExist)
	}
	partial, err := unused(target+".partial", func(name string) error { return os.Mkdir(name, 0o755) })
	if err != nil {
		return err
	}
	complete := false
	defer func() {
		if !complete {
			os.RemoveAll(partial) // this call created the folder
		}
	}()
	if err := write(partial); err != nil {
		return err
	}
	if err := list(partial, what); err != nil {
		return err
	}
	old, entries, err := setAside(target)
	if err != nil {
		return err
	}
	if err := os.Rename(partial, target); err != nil {
		if old != "" {
			err = errors.Join(err, os.Rename(old, target))
		}
		return err
	}
	complete = true
	if old == "" {
		return nil
	}
	return remove(old, entries)
}

// unused calls `create` with NAME, NAME-2, NAME-3 and so on, until it finds a name that is not in use. It
// returns this name.
func unused(name string, create func(name string) error) (string, error) {
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			try += "-" + strconv.Itoa(n)
		}
		if err := create(try); !errors.Is(err, fs.ErrExist) || n == 1000 {
			return try, err
		}
	}
}

// setAside renames the folder `target` if Write may replace it. It returns the new name and the contents of
// the folder. If `target` does not exist, setAside returns "".
func setAside(target string) (old string, entries []entry, err error) {
	entries, err = written(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, nil
	case err != nil:
		return "", nil, err
	}
	old, err = unused(target+".old", func(name string) error {
		if _, err := os.Lstat(name); err == nil {
			return fs.ErrExist
		}
		return os.Rename(target, name)
	})
	return old, entries, err
}

// remove removes a folder with the given contents. The contents are removed one by one, so that a file that
// appeared in the folder meanwhile is kept.
func remove(old string, entries []entry) error {
	var err error
	for _, e := range slices.Backward(entries) { // delete the contents of a folder before the folder itself
		err = errors.Join(err, os.Remove(filepath.Join(old, filepath.FromSlash(e.path))))
	}
	if err = errors.Join(err, os.Remove(old)); err != nil {
		return fmt.Errorf("the new folder is complete, but the old one, %s, could not be removed: %w",
			printable.Short(old, 160), err)
	}
	return nil
}

// entry is a file or a folder in a folder.
type entry struct {
	path string // relative to the folder, with slashes
	size int64  // -1 for a folder
}

// contents returns everything in a folder and in the folders below it. A folder comes before its contents.
// contents returns ErrForeign if something is neither a file nor a folder.
func contents(dir string) ([]entry, error) {
	var list []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		in, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		e := entry{filepath.ToSlash(in), -1}
		if !d.IsDir() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			if !info.Mode().IsRegular() {
				return foreign(e.path)
			}
			e.size = info.Size()
		}
		list = append(list, e)
		return nil
	})
	return list, err
}

func foreign(path string) error {
	return fmt.Errorf("%w: %s", ErrForeign, printable.Short(path, 160))
}

// list makes sure that the files of a folder are on the disk. Then it writes the list of these files to a
// file in the folder.
func list(dir, what string) error {
	entries, err := contents(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", firstLine, what)
	for _, e := range entries {
		if e.size < 0 {
			continue
		}
		if err := flush(filepath.Join(dir, filepath.FromSlash(e.path))); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%d %s\n", e.size, e.path)
	}
	path := filepath.Join(dir, List)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return err
	}
	return flush(path)
}

// flush makes the operating system write the data of a file to the disk.
func flush(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// written returns the contents of a folder that Write has written, the list included. It returns ErrForeign
// if the folder contains anything that the list does not name, or a file whose size is not the listed one.
// It accepts an empty folder.
func written(dir string) ([]entry, error) {
	entries, err := contents(dir)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	sizes, err := readList(filepath.Join(dir, List))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if size, known := sizes[e.path]; e.path != List && (!known || size != e.size) {
			return nil, foreign(e.path)
		}
	}
	return entries, nil
}

// readList reads the list of the files of a folder. It returns the size of each file, and -1 for each folder
// that contains one of the files. It ignores lines that it cannot parse.
func readList(name string) (map[string]int64, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: its list of files, %s, is missing", ErrForeign, List)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxList))
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), firstLine) {
		return nil, foreign(List)
	}
	sizes := map[string]int64{}
	for lines.Scan() {
		size, file, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 {
			continue
		}
		sizes[file] = n
		for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
			sizes[dir] = -1
		}
	}
	return sizes, lines.Err()
}
