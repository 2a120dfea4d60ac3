// Package pte reads ExecuTorch programs: .pte files, the .ptd files that hold weights outside of them, and
// .bpte files, which add test cases. Package vulkan below it reads the graph of a Vulkan delegate.
//
//	f, err := pte.Open("model.pte", "model.ptd")
//	m, err := f.Method("forward")
//	for _, id := range m.Inputs {
//		t := m.Values[id].(*pte.Tensor) // t.Type, t.Sizes
//	}
//
// A program has methods. A method is a list of values and a list of instructions over them: calls of portable
// operators, and calls of delegates, which are graphs compiled for a backend in that backend's own format.
//
// A file is not trusted. Every offset, count, id and size is checked before it is used, memory is allocated
// in proportion to the file, and damage is one *Error that names the table and the field. The file is mapped
// into memory: bytes of weights and delegates are read from disk when they are used, and never copied.
package pte

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gpuscope/internal/mapfile"
	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte/internal/flat"
)

// Error is damage in a file: where it is, and what is wrong.
type Error = flat.Error

// What callers branch on; the errors of this package wrap them.
var (
	// ErrFormat says that a file is not of the format that it was read as.
	ErrFormat = errors.New("unknown file format")
	// ErrNoData says that neither the program nor its data files have a key.
	ErrNoData = errors.New("no such named data")
	// ErrTwice says that two data files have the same key.
	ErrTwice = errors.New("named data in two files")
)

// File is an open program. Its methods may be called from any goroutine, Close excepted.
type File struct {
	Version  uint32
	Extended bool // it has an extended header: weights and delegates may be in segments
	Methods  []*Method
	Segments []Data
	Named    []Named // the program's own
	// Suites are the test cases of a .bpte file, by method; Bundled says that it is one.
	Suites  []Suite
	Bundled bool

	source *source
	size   int64
	named  map[string]Data

	// dir is where data files are looked for, once a key is found nowhere else; "" for nowhere.
	dir      string
	looking  sync.Mutex
	external []*DataFile
	beside   []*DataFile // not yet used
	looked   bool
	broken   error // what was wrong with files in dir
}

// Named is a blob with a key.
type Named struct {
	Key    string
	Data   Data
	Layout *Layout // of a tensor; nil for bytes of a delegate
}

// Layout is the shape of a tensor in a data file.
type Layout struct {
	Type     Type
	Sizes    []int
	DimOrder []int
}

// Open opens a .pte or .bpte file with the data files that its constants are in. Where no data files are
// given, a key that the program lacks is looked up in the .ptd files of its folder. No file may be cut
// shorter while it is open.
func Open(path string, dataFiles ...string) (*File, error) {
	from, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := read(from, path)
	if err != nil {
		return nil, err
	}
	if len(dataFiles) == 0 {
		f.dir = filepath.Dir(path)
	}
	for _, path := range dataFiles {
		d, err := OpenData(path)
		if err == nil {
			err = f.Attach(d)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// Parse reads a program that is in memory already. The File keeps data, which must not change. Errors start
// with name.
func Parse(data []byte, name string) (*File, error) {
	return read(mapfile.Of(data), cmp.Or(name, "program"))
}

// read takes the file over: it is closed where there is an error.
func read(from *mapfile.File, name string) (*File, error) {
	f := &File{source: &source{name, from}, size: from.Size()}
	err := f.read(all(f.source))
	if err == nil {
		return f, nil
	}
	_ = from.Close() // what is wrong with the file is what to say
	return nil, called(err, name)
}

// called puts the name of a file into an error.
func called(err error, name string) error {
	var e *Error
	if errors.As(err, &e) {
		if e.File == "" {
			e.File = printable.Short(name, 200)
		}
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Name is the path or name that the program was opened by.
func (f *File) Name() string { return f.source.name }

// Size is the bytes of the program's file.
func (f *File) Size() int64 { return f.size }

// Close gives the mappings back. What Data.Bytes gave must not be used after it, and it gives nothing more.
func (f *File) Close() error {
	err := f.source.from.Close()
	for _, d := range slices.Concat(f.external, f.beside) {
		err = errors.Join(err, d.Close())
	}
	return err
}

// Method finds a method by its name.
func (f *File) Method(name string) (*Method, error) {
	var names []string
	for _, m := range f.Methods {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("%s: no method %q: it has %s", f.Name(), printable.Short(name, 80),
		cmp.Or(printable.Short(strings.Join(names, ", "), 200), "none"))
}

// Attach adds a data file, which is closed with the program. A key that another data file has already is an
// ErrTwice; the file is then closed at once.
func (f *File) Attach(d *DataFile) error {
	f.looking.Lock()
	defer f.looking.Unlock()
	for i := range d.Named {
		for _, other := range f.external {
			if _, both := other.find(d.Named[i].Key); both {
				return errors.Join(twice(d.Named[i].Key, other, d), d.Close())
			}
		}
	}
	f.external = append(f.external, d)
	return nil
}

func twice(key string, a, b *DataFile) error {
	return &Error{
		File: b.Name(), Table: "NamedData", Field: "key",
		Problem: fmt.Sprintf("%s is in %s too: give the data files of one program", printable.Short(key, 80),
			a.Name()),
		Err: ErrTwice,
	}
}

// DataFiles are the data files that are used: those attached, and those of the folder that have a key which
// was looked up.
func (f *File) DataFiles() []*DataFile {
	f.looking.Lock()
	defer f.looking.Unlock()
	return slices.Clone(f.external)
}

// Lookup finds a blob by its key: in the program, or otherwise in the data files. Where none has it the error
// is an ErrNoData.
func (f *File) Lookup(key string) (Data, error) {
	if d, ok := f.named[key]; ok {
		return d, nil
	}
	f.looking.Lock()
	defer f.looking.Unlock()
	for _, file := range f.external {
		if d, ok := file.find(key); ok {
			return d, nil
		}
	}
	found, err := f.lookBeside(key)
	if err != nil {
		return Data{}, err
	}
	if found == nil {
		where := "its data files"
		if len(f.external) == 0 {
			where = "a data file"
		}
		return Data{}, &Error{
			File: f.Name(), Table: "NamedData", Field: "key",
			Problem: fmt.Sprintf("neither the program nor %s has %s", where, printable.Short(key, 80)) +
				because(f.broken),
			Err: ErrNoData,
		}
	}
	d, _ := found.find(key)
	return d, nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return "; not read: " + printable.Short(err.Error(), 200)
}

// lookBeside finds the file of the folder that has a key, and uses it from then on.
func (f *File) lookBeside(key string) (*DataFile, error) {
	if f.dir == "" {
		return nil, nil
	}
	if !f.looked {
		f.looked = true
		paths, _ := filepath.Glob(filepath.Join(f.dir, "*.ptd")) // a folder with wild cards has none
		for _, path := range paths {
			d, err := OpenData(path)
			if err != nil {
				f.broken = errors.Join(f.broken, err)
				continue
			}
			f.beside = append(f.beside, d)
		}
	}
	var found *DataFile
	for _, d := range f.beside {
		if _, ok := d.find(key); !ok {
			continue
		}
		if found != nil {
			return nil, twice(key, found, d)
		}
		found = d
	}
	if found != nil {
		f.beside = slices.DeleteFunc(f.beside, func(d *DataFile) bool { return d == found })
		f.external = append(f.external, found)
	}
	return found, nil
}

// IsProgram says whether a file is a program, by its first bytes; what cannot be read is none.
func IsProgram(path string) bool {
	file, _, err := mapfile.Regular(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(file, head); err != nil {
		return false
	}
	id := identified(head)
	return id == bundleID || id[:2] == programID[:2] && isDigits(id[2:])
}

func isDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
