// Package sources manages a folder of kernel sources for the user to edit: it writes the files, removes those
// that were not edited, and watches for changes.
package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gpuscope/session"
)

// NewFolder creates a new folder for kernel sources in the folder `cache`, or in the folder for temporary
// files if cache is "". It returns the path of the new folder.
func NewFolder(cache string) (dir string, err error) {
	base := filepath.Join(cmp.Or(cache, filepath.Join(os.TempDir(), "gpuscope")), "shaders")
	if err = os.MkdirAll(base, 0o700); err == nil {
		dir, err = os.MkdirTemp(base, "")
	}
	if err != nil {
		err = fmt.Errorf("folder for kernel sources: %w. Choose another folder with --shaders DIR", err)
	}
	return dir, err
}

// Write writes the source of a kernel to its file in `dir` and returns the path. It keeps an existing file,
// because the user may have edited this file. It creates `dir` if necessary.
func Write(dir, kernel, text string) (path string, err error) {
	path = filepath.Join(dir, kernel+session.KernelSuffix)
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return path, err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// Replace writes another source of a kernel to its file in `dir` and returns the path. It returns an error if
// the file holds a source that is not in `known`, because this source would be lost.
func Replace(dir, kernel, text string, known []string) (path string, err error) {
	path = filepath.Join(dir, kernel+session.KernelSuffix)
	switch now, err := session.ReadKernelText(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return path, err
	case !slices.Contains(known, now):
		return path, fmt.Errorf("%s holds a source that was not tried. Save it in an editor to try it, or move the file",
			path)
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// RemoveUnchanged removes the source files that the user has not edited, and then the folder if it is empty.
// `made` maps the path of each file to the source that was first written to the file.
func RemoveUnchanged(dir string, made map[string]string) {
	for path, text := range made {
		if now, err := os.ReadFile(path); err == nil && string(now) == text {
			_ = os.Remove(path) // if this fails, the file just stays, like an edited one
		}
	}
	_ = os.Remove(dir)
}

// WatchEvery is the interval at which files are checked for changes. Tests use a shorter interval.
var WatchEvery = 500 * time.Millisecond

// stamp identifies one version of a file by its modification time and its size.
type stamp struct {
	at   time.Time
	size int64
}

// Watch watches the kernel sources in a folder for changes until ctx ends. It checks the files every
// WatchEvery, and at once when `wake` receives a value. After each change of a source, it calls `tell` with
// the new text or with the error of reading the file.
func Watch(
	ctx context.Context, dir string, wake <-chan struct{}, tell func(kernel, text string, err error),
) {
	seen := stamps(dir)
	tick := time.NewTicker(WatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-wake:
		}
		now := stamps(dir)
		for kernel, s := range now {
			if seen[kernel] == s {
				continue
			}
			text, err := session.ReadKernelText(filepath.Join(dir, kernel+session.KernelSuffix))
			if errors.Is(err, fs.ErrNotExist) || err == nil && text == "" { // the file is being written
				now[kernel] = seen[kernel]
				continue
			}
			tell(kernel, text, err)
		}
		seen = now
	}
}

// stamps returns the stamp of each kernel source in a folder, by kernel name.
func stamps(dir string) map[string]stamp {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := map[string]stamp{}
	for _, f := range list {
		kernel, is := strings.CutSuffix(f.Name(), session.KernelSuffix)
		if !is {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, f.Name())); err == nil { // follows symbolic links
			all[kernel] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}
