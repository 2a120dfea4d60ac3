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

// The files of a folder: all tensors in one, or in those that an index lists.
const (
	single    = "model.safetensors"
	indexName = "model.safetensors.index.json"
)

// maxIndex is how many bytes an index may have; that of 100,000 tensors has 10 MB.
const maxIndex = 32 << 20

// Folder are the tensors of a model that lies in one file of a folder, or in several.
type Folder struct {
	path    string
	files   []*File
	tensors []*Tensor
	unread  string
}

// OpenFolder opens model.safetensors in a folder, or where there is none the files that
// model.safetensors.index.json lists, as transformers does.
func OpenFolder(path string) (*Folder, error) {
	names := []string{single}
	var in map[string]string // the file of each tensor, where an index says so
	if _, err := os.Stat(filepath.Join(path, single)); errors.Is(err, fs.ErrNotExist) {
		in, err = readIndex(filepath.Join(path, indexName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: neither %s nor %s is there: give the folder of a model that was saved as safetensors",
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

// readIndex is the file of each tensor.
func readIndex(path string) (map[string]string, error) {
	data, err := mapfile.Read(path, maxIndex)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := readjson.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%s: %w: the file is damaged, fetch it again", path, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: weight_map is empty or missing, want the file of each tensor", path)
	}
	for tensor, name := range index.WeightMap {
		if name == "." || name != filepath.Base(name) || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: tensor %q is in %q, want the name of a file in the folder", path,
				short(tensor), short(name))
		}
	}
	return index.WeightMap, nil
}

// open opens files of the folder. Each tensor that an index lists must be in its file, and no two files may
// have one.
func (f *Folder) open(names []string, in map[string]string) error {
	have := map[string]string{}
	for i, name := range names {
		file, err := Open(filepath.Join(f.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %s is missing, file %d of %d that %s lists: fetch it too", f.path,
				short(name), i+1, len(names), indexName)
		}
		if err != nil {
			return err
		}
		f.files = append(f.files, file)
		for _, t := range file.tensors {
			if other, twice := have[t.Name]; twice {
				return fmt.Errorf("%s: tensor %q is in %s and in %s", f.path, short(t.Name), short(other),
					short(name))
			}
			have[t.Name] = name
		}
		f.tensors = append(f.tensors, file.tensors...)
	}
	for _, tensor := range slices.Sorted(maps.Keys(in)) {
		if have[tensor] != in[tensor] {
			return fmt.Errorf("%s: tensor %q is not in %s, where %s has it: fetch the files again", f.path,
				short(tensor), short(in[tensor]), indexName)
		}
	}
	return nil
}

// Files are the files that are open, in the order of their names.
func (f *Folder) Files() []*File { return f.files }

// Tensors are all tensors, file by file in the order of their bytes. The slice must not be changed.
func (f *Folder) Tensors() []*Tensor { return f.tensors }

// Unread is the name of the index whose files were not opened, as the folder has all tensors in one file too;
// "" where there is none.
func (f *Folder) Unread() string { return f.unread }

// Close closes all files.
func (f *Folder) Close() error {
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
