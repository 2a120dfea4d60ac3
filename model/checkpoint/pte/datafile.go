package pte

import (
	"gpuscope/internal/mapfile"
	"gpuscope/model/checkpoint/pte/internal/flat"
)

// DataFile is an open .ptd file. It contains weights that are stored outside of the program.
type DataFile struct {
	Segments []Data
	Named    []Named

	source *source
	named  map[string]Data
}

// OpenData opens a .ptd file. The file must not be truncated while it is open.
func OpenData(path string) (*DataFile, error) {
	from, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	return readData(all(&source{path, from}))
}

// ParseData reads a .ptd file whose bytes are already in memory. The caller must not modify data. Error
// messages start with `name`.
func ParseData(data []byte, name string) (*DataFile, error) { return readData(Of(data, name)) }

func readData(d Data) (*DataFile, error) {
	f := &DataFile{source: d.source}
	if err := f.read(d); err != nil {
		_ = d.source.from.Close() // return only the parse error, which tells the user more
		return nil, called(err, d.source.name)
	}
	return f, nil
}

func (f *DataFile) read(d Data) error {
	l, err := dataLayout(d)
	if err != nil {
		return err
	}
	data, err := l.buffer.Bytes()
	if err != nil {
		return err
	}
	b := flat.New(data)
	root := b.Root(flatKind)
	f.Segments = tables(root, flatSegments, segmentKind, segmentIn(l.segments))
	f.Named, f.named = named(root, flatNamed, f.Segments)
	return b.Err()
}

// Name returns the path given to OpenData or the name given to ParseData.
func (f *DataFile) Name() string { return f.source.name }

// Close unmaps the file. If the file is attached to a program, File.Close closes it.
func (f *DataFile) Close() error { return f.source.from.Close() }

func (f *DataFile) find(key string) (Data, bool) {
	d, ok := f.named[key]
	return d, ok
}
