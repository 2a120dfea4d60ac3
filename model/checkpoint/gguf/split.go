package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// A model may be split over files NAME-00001-of-00003.gguf and on, as llama-gguf-split writes them: each is a
// GGUF file that says which part of how many it is, and the first has the metadata of the whole. The keys are
// those of llama.cpp's src/llama-arch.cpp; parts count from 0 in them, and from 1 in names.
const (
	splitCount   = "split.count"
	splitNo      = "split.no"
	splitTensors = "split.tensors.count"
	maxParts     = 99999 // that a name has digits for
)

// split is what a file says of itself as a part of a model.
type split struct{ no, count, tensors int }

// split reads which part a file is; a file that is whole is one of one. A count of tensors that is not there
// is -1.
func (f *File) split() (s split, err error) {
	if s.count, err = f.IntOr(splitCount, 0); err != nil || s.count < 2 { // 0 stands for a whole file too
		return split{count: 1}, err
	}
	var err1, err2 error
	s.no, err1 = f.Int(splitNo)
	s.tensors, err2 = f.IntOr(splitTensors, -1)
	if err := cmp.Or(err1, err2); err != nil {
		return s, err
	}
	if s.count > maxParts || s.no < 0 || s.no >= s.count {
		return s, f.errorf("%s is %d and %s %d: want at most %d parts, numbered from 0", splitCount, s.count,
			splitNo, s.no, maxParts)
	}
	return s, nil
}

// suffix is what the name of part i, from 0, ends with.
func (s *split) suffix(i int) string { return fmt.Sprintf("-%05d-of-%05d.gguf", i+1, s.count) }

// join is the whole model that a file is a part of, whichever it is, or the file itself. The whole has the
// name and metadata of the first part, and the tensors of all. join takes the file over.
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
			_ = part.Close() // what is wrong is what to say
		}
		return nil, err
	}
	return parts[0], nil
}

// parts opens all parts, of which the file is one, in their order: as many as could be opened.
func (f *File) parts(s *split) (parts []*File, err error) {
	base, ok := strings.CutSuffix(f.name, s.suffix(s.no))
	if !ok {
		return nil, f.errorf("it is part %d of %d of a split model, and the others are found by its name: call it NAME%s",
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

// openPart opens part i of a split model and holds it to what another part says of the whole.
func openPart(path string, i int, s *split) (*File, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: the model is split into %d files, which must be in one folder",
			path, s.count)
	}
	part, err := openOne(path)
	if err != nil {
		return nil, err
	}
	is, err := part.split()
	if want := (split{i, s.count, s.tensors}); err == nil && is != want {
		err = part.errorf("it is part %d of %d of a model of %d tensors, want part %d of %d, of %d tensors: it is of another model",
			is.no+1, is.count, is.tensors, i+1, s.count, s.tensors)
	}
	if err != nil {
		_ = part.Close()
		return nil, err
	}
	return part, nil
}

// take makes the tensors of the other parts the file's too.
func (f *File) take(others []*File, s *split) error {
	f.others = others
	for _, part := range others {
		for _, t := range part.tensors {
			if twice := f.byName[t.Name]; twice != nil {
				return part.errorf("tensor %q is in %s too", short(t.Name), twice.file.name)
			}
			f.byName[t.Name] = t
		}
		f.tensors = append(f.tensors, part.tensors...)
	}
	if s.tensors >= 0 && len(f.tensors) != s.tensors {
		return f.errorf("the %d parts have %d tensors, %s is %d: a part is damaged, fetch it again", s.count,
			len(f.tensors), splitTensors, s.tensors)
	}
	return nil
}
