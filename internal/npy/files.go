package npy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFiles writes arrays to the files NAME0.npy, NAME1.npy, ... in a folder, and returns the paths. It
// creates the folder. All data is written to temporary files before any of them is renamed. If writing
// fails, the existing files are therefore unchanged.
func WriteFiles(dir, name string, arrays []*Array) (paths []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var partial []string
	defer func() {
		for _, path := range partial[len(paths):] {
			_ = os.Remove(path) // ignore this error: the first one is more informative
		}
	}()
	for i, a := range arrays {
		f, err := os.CreateTemp(dir, fmt.Sprintf("%s%d-*.partial", name, i))
		if err != nil {
			return nil, err
		}
		partial = append(partial, f.Name())
		_, err = f.Write(a.Bytes())
		if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
			return nil, err
		}
	}
	for i, path := range partial {
		to := filepath.Join(dir, fmt.Sprintf("%s%d.npy", name, i))
		if err := os.Rename(path, to); err != nil {
			return paths, err
		}
		paths = append(paths, to)
	}
	return paths, nil
}
