package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gpuscope/internal/mapfile"
	"gpuscope/internal/readjson"
)

// A folder has either a single file with all tensors or several files listed in an index.
const (
	single    = "model.safetensors"
	indexName = "model.safetensors.index.json"
)

// maxIndex is the maximum size of an index in bytes. An index of 100,000 tensors has 10 MB.
const maxIndex = 32 << 20

// Folder is a model folder with one or several open safetensors files.
type Folder struct {
	path    string
	files   []*File
	tensors []*Tensor
	unread  string // result of Unread
}

// OpenFolder opens the safetensors files of a model folder. It opens model.safetensors. If this file does
// not exist, it opens the files that model.safetensors.index.json lists. The transformers library chooses
// the files in the same way.
func OpenFolder(path string) (*Folder, error) {
	names := []string{single}
	var in map[string]string // maps each tensor to its file; nil without an index
	if _, err := os.Stat(filepath.Join(path, single)); errors.Is(err, fs.ErrNotExist) {
		in, err = readIndex(filepath.Join(path, indexName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: the folder contains neither %s nor %s. Use the folder of a model that was saved as safetensors",
				path, single, indexName)
		}
		if err != nil {
			return nil, err
		}
		names = slices.Compact(slices.Sorted(maps.Values(in)))
	}
	f := &Folder{path: path}
	if _, err := os.Stat(filepath.Join(path, indexName)); err == nil && in == nil {
		f.unread = indexName
	}
	if err := f.open(names, in); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readIndex reads an index and returns a map from each tensor name to the name of the tensor's file.
func readIndex(path string) (map[string]string, error) {
	data, err := mapfile.Read(path, maxIndex)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := readjson.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: %w: the file is damaged. Download it again", path, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: weight_map is empty or missing; it must map each tensor to its file",
			path)
	}
	for tensor, name := range index.WeightMap {
		if name == "." || name != filepath.Base(name) || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: weight_map says that tensor %q is in file %q; want a file name without folders", path,
				short(tensor), short(name))
		}
	}
	return index.WeightMap, nil
}

// open opens the named files of the folder. It returns an error if two files contain the same tensor. It also
// returns an error if a file does not contain a tensor that the index assigns to the file. `in` maps each
// tensor to its file, as returned by readIndex. It is nil if there is no index.
func (f *Folder) open(names []string, in map[string]string) error {
	have := map[string]string{}
	for i, name := range names {
		file, err := Open(filepath.Join(f.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %s is missing (file %d of %d in %s). Download the missing file", f.path,
				short(name), i+1, len(names), indexName)
		}
		if err != nil {
			return err
		}
		f.files = append(f.files, file)
		for _, t := range file.tensors {
			if other, twice := have[t.Name]; twice {
				return fmt.Errorf("%s: tensor %q is in both %s and %s", f.path, short(t.Name), short(other),
					short(name))
			}
			have[t.Name] = name
		}
		f.tensors = append(f.tensors, file.tensors...)
	}
	for _, tensor := range slices.Sorted(maps.Keys(in)) {
		if have[tensor] != in[tensor] {
			return fmt.Errorf("%s: tensor %q is not in %s, although %s lists it there. Download the files again",
				f.path, short(tensor), short(in[tensor]), indexName)
		}
	}
	return nil
}

// Files returns the open files, sorted by name.
func (f *Folder) Files() []*File { return f.files }

// Tensors returns the tensors of all files. It returns them file by file, and sorted by offset within a file.
// The caller must not modify the slice.
func (f *Folder) Tensors() []*Tensor { return f.tensors }

// Unread returns the name of the index file if OpenFolder ignored the index because model.safetensors exists.
// It returns "" if the folder has no index or if the index was used.
func (f *Folder) Unread() string { return f.unread }

// Close closes all files of the folder.
func (f *Folder) Close() error {
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
