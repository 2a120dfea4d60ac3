package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// llama-gguf-split splits a model over files named NAME-00001-of-00003.gguf, NAME-00002-of-00003.gguf and so
// on. Each file is a GGUF file with its part number and the number of parts in its metadata. The first file
// also has the metadata of the whole model. The keys are defined in llama.cpp's src/llama-arch.cpp. Part
// numbers start at 0 in the metadata and at 1 in file names.
const (
	splitCount   = "split.count"
	splitNo      = "split.no"
	splitTensors = "split.tensors.count"
	maxParts     = 99999 // the largest part number that fits the five digits of a file name
)

// split identifies a file among the parts of a split model. The metadata of the file contain these numbers.
type split struct {
	no      int // part number, from 0
	count   int // number of parts
	tensors int // number of tensors of the whole model; -1 if the file does not state it
}

// split reads which part of a split model the file contains. A file with a whole model is part 0 of 1.
func (f *File) split() (s split, err error) {
	if s.count, err = f.IntOr(splitCount, 0); err != nil || s.count < 2 { // 0 and 1 both mean a whole model
		return split{count: 1}, err
	}
	var err1, err2 error
	s.no, err1 = f.Int(splitNo)
	s.tensors, err2 = f.IntOr(splitTensors, -1)
	if err := cmp.Or(err1, err2); err != nil {
		return s, err
	}
	if s.count > maxParts || s.no < 0 || s.no >= s.count {
		return s, f.errorf("%s is %d and %s is %d, but there can be at most %d parts, numbered from 0",
			splitCount, s.count, splitNo, s.no, maxParts)
	}
	return s, nil
}

// suffix returns the end of the file name of part i, where the first part is 0.
func (s *split) suffix(i int) string { return fmt.Sprintf("-%05d-of-%05d.gguf", i+1, s.count) }

// join opens the other parts of a split model and returns the whole model. The returned File has the name and
// the metadata of the first part, and the tensors of all parts. If f is not a part of a split model, join
// returns f. join takes ownership of f and closes it if an error occurs.
func (f *File) join() (*File, error) {
	s, err := f.split()
	if err == nil && s.count == 1 {
		return f, nil
	}
	var parts []*File
	if err == nil {
		parts, err = f.parts(&s)
	}
	if err == nil {
		err = parts[0].take(parts[1:], &s)
	}
	if err != nil {
		for _, part := range append(parts, f) {
			_ = part.Close() // return only the first error, which tells the user more
		}
		return nil, err
	}
	return parts[0], nil
}

// parts returns all parts of the split model in order. It opens every part except f itself. If it cannot open
// a part, it returns the error and the parts that precede this part.
func (f *File) parts(s *split) (parts []*File, err error) {
	base, ok := strings.CutSuffix(f.name, s.suffix(s.no))
	if !ok {
		return nil, f.errorf("this file is part %d of %d of a split model, but its name is not the usual one, so the other parts cannot be found. Rename the file to NAME%s",
			s.no+1, s.count, s.suffix(s.no))
	}
	for i := range s.count {
		part := f
		if i != s.no {
			if part, err = openPart(base+s.suffix(i), i, s); err != nil {
				return parts, err
			}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// openPart opens part i of the split model s. It returns an error if the metadata of the part does not match
// i and s.
func openPart(path string, i int, s *split) (*File, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: the model consists of %d files. Put all of them into one folder",
			path, s.count)
	}
	part, err := openOne(path)
	if err != nil {
		return nil, err
	}
	is, err := part.split()
	if want := (split{i, s.count, s.tensors}); err == nil && is != want {
		err = part.errorf("the file belongs to another model: it is part %d of %d of a model with %d tensors, but part %d of %d of a model with %d tensors is needed",
			is.no+1, is.count, is.tensors, i+1, s.count, s.tensors)
	}
	if err != nil {
		_ = part.Close()
		return nil, err
	}
	return part, nil
}

// take adds the tensors of the other parts to f. From then on, f owns the other parts and closes them.
func (f *File) take(others []*File, s *split) error {
	f.others = others
	for _, part := range others {
		for _, t := range part.tensors {
			if twice := f.byName[t.Name]; twice != nil {
				return part.errorf("tensor %q is also in %s", short(t.Name), twice.file.name)
			}
			f.byName[t.Name] = t
		}
		f.tensors = append(f.tensors, part.tensors...)
	}
	if s.tensors >= 0 && len(f.tensors) != s.tensors {
		return f.errorf("the %d parts have %d tensors in total, but metadata key %s says %d: a part is damaged. Download the parts again", s.count,
			len(f.tensors), splitTensors, s.tensors)
	}
	return nil
}
