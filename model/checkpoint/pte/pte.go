// Package pte reads ExecuTorch programs. A .pte file contains a program, a .ptd file contains weights stored
// outside a program, and a .bpte file contains a program and test cases. Subpackage vulkan reads the graph of
// a Vulkan delegate.
//
//	f, err := pte.Open("model.pte", "model.ptd")
//	m, err := f.Method("forward")
//	for _, id := range m.Inputs {
//		t := m.Values[id].(*pte.Tensor) // t.Type, t.Sizes
//	}
//
// A program has methods. A method is a list of values and a list of instructions that read and write the
// values. Most instructions call a portable operator or a delegate. A delegate is a part of the model that
// was compiled for a backend, stored in the format of the backend.
//
// The package does not trust the file. It checks every offset, count, id and size before it uses the number,
// and it allocates memory in proportion to the size of the file. The error for a damaged file is an *Error
// that names the table and the field. The file is mapped into memory. Bytes of weights and delegates are read
// from disk when they are used, and never copied.
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

// Error describes damage in a file and its location.
type Error = flat.Error

// Sentinel errors. The errors of this package wrap them.
var (
	// ErrFormat means that a file does not have the expected format.
	ErrFormat = errors.New("unknown file format")
	// ErrNoData means that a key is neither in the program nor in its data files.
	ErrNoData = errors.New("no named data with this key")
	// ErrTwice means that two data files contain the same key, or that one file contains a key twice.
	ErrTwice = errors.New("a key of named data occurs twice")
)

// File is an open program. All methods except Close are safe for concurrent use.
type File struct {
	Version  uint32
	Extended bool // the file has an extended header, so it may store weights and delegates in segments
	Methods  []*Method
	Segments []Data
	Named    []Named // named data of the program file, without those of data files
	Suites   []Suite // test cases of a .bpte file, one Suite per method
	Bundled  bool    // the file is a .bpte file

	source *source
	size   int64
	named  map[string]Data

	// dir is the folder whose .ptd files Lookup searches if it finds a key nowhere else. If dir is "", Lookup
	// does not search.
	dir      string
	looking  sync.Mutex  // must be locked to use the fields below
	external []*DataFile // data files in use: attached ones, and those that Lookup found in `dir`
	beside   []*DataFile // the other data files in `dir`
	looked   bool        // the list of files in `dir` has been read
	broken   error       // errors of the .ptd files in `dir` that could not be read, joined
}

// Named is a blob of bytes with the key that names it.
type Named struct {
	Key    string
	Data   Data
	Layout *Layout // type and shape of a tensor; nil if the blob is not a tensor
}

// Layout is the type and shape of a tensor in a data file.
type Layout struct {
	Type     Type
	Sizes    []int
	DimOrder []int
}

// Open opens a .pte or .bpte file and the data files with its constants. If no data files are given, Lookup
// searches for missing keys in the .ptd files that are in the folder of the program. No file may be truncated
// while it is open.
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

// Parse reads a program whose bytes are already in memory. The returned File keeps a reference to data, so
// the caller must not modify data. Error messages start with `name`.
func Parse(data []byte, name string) (*File, error) {
	return read(mapfile.Of(data), cmp.Or(name, "program"))
}

// read takes ownership of the file and closes it if an error occurs.
func read(from *mapfile.File, name string) (*File, error) {
	f := &File{source: &source{name, from}, size: from.Size()}
	err := f.read(all(f.source))
	if err == nil {
		return f, nil
	}
	_ = from.Close() // return only the parse error, which tells the user more
	return nil, called(err, name)
}

// called adds the name of a file to an error.
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

// Name returns the path given to Open or the name given to Parse.
func (f *File) Name() string { return f.source.name }

// Size returns the size of the program file in bytes.
func (f *File) Size() int64 { return f.size }

// Close unmaps the program and its data files. Slices returned by Data.Bytes must not be used after Close,
// and further calls of Data.Bytes return an error.
func (f *File) Close() error {
	err := f.source.from.Close()
	for _, d := range slices.Concat(f.external, f.beside) {
		err = errors.Join(err, d.Close())
	}
	return err
}

// Method returns the method with the given name, or an error that lists the methods of the program.
func (f *File) Method(name string) (*Method, error) {
	var names []string
	for _, m := range f.Methods {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("%s: no method %q; methods: %s", f.Name(), printable.Short(name, 80),
		cmp.Or(printable.Short(strings.Join(names, ", "), 200), "none"))
}

// Attach adds a data file to the program. File.Close closes the data file. If a data file in use already
// contains one of the keys of d, Attach closes d and returns an error that wraps ErrTwice.
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
		Problem: fmt.Sprintf("the key %s is also in %s. Use only the data files of one program",
			printable.Short(key, 80), a.Name()),
		Err: ErrTwice,
	}
}

// DataFiles returns the data files in use. These are the attached files, and the files in the folder of the
// program in which Lookup has found a key.
func (f *File) DataFiles() []*DataFile {
	f.looking.Lock()
	defer f.looking.Unlock()
	return slices.Clone(f.external)
}

// Lookup returns the blob with the given key from the program or from the data files. If no file contains the
// key, the error wraps ErrNoData.
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
			Problem: fmt.Sprintf("neither the program nor %s contains the key %s",
				where, printable.Short(key, 80)) +
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
	return "; some data files could not be read: " + printable.Short(err.Error(), 200)
}

// lookBeside searches the .ptd files in `dir` for a key. If a file contains the key, lookBeside appends the
// file to `external` and returns it. Otherwise it returns nil.
func (f *File) lookBeside(key string) (*DataFile, error) {
	if f.dir == "" {
		return nil, nil
	}
	if !f.looked {
		f.looked = true
		// Glob interprets wildcards in the name of the folder too, and then may find no files.
		paths, _ := filepath.Glob(filepath.Join(f.dir, "*.ptd"))
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

// IsProgram reports whether the first bytes of a file identify an ExecuTorch program. It returns false if the
// file cannot be read.
func IsProgram(path string) bool {
	id := identifierOf(path)
	return id == bundleID || isVersionOf(id, programID)
}

// IsDataFile reports whether the first bytes of a file identify a data file of ExecuTorch programs. It
// returns false if the file cannot be read.
func IsDataFile(path string) bool { return isVersionOf(identifierOf(path), dataID) }

// identifierOf returns the file identifier of a file, or "" if the file cannot be read.
func identifierOf(path string) string {
	file, _, err := mapfile.Regular(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(file, head); err != nil {
		return ""
	}
	return identified(head)
}

// isVersionOf reports whether two identifiers are equal up to their version, the last two digits.
func isVersionOf(id, known string) bool {
	return len(id) == len(known) && id[:2] == known[:2] && isDigits(id[2:])
}

func isDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
