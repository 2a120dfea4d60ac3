package pte

import (
	"gpuscope/internal/mapfile"
	"gpuscope/model/checkpoint/pte/internal/flat"
)

// DataFile is a .ptd file: weights outside of a program.
type DataFile struct {
	Segments []Data
	Named    []Named

	source *source
	named  map[string]Data
}

// OpenData opens a .ptd file. It must not be cut shorter while it is open.
func OpenData(path string) (*DataFile, error) {
	from, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	return readData(all(&source{path, from}))
}

// ParseData reads a data file that is in memory already.
func ParseData(data []byte, name string) (*DataFile, error) { return readData(Of(data, name)) }

func readData(d Data) (*DataFile, error) {
	f := &DataFile{source: d.source}
	if err := f.read(d); err != nil {
		_ = d.source.from.Close() // what is wrong with the file is what to say
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

// Name is the path or name that the file was opened by.
func (f *DataFile) Name() string { return f.source.name }

// Close gives the mapping back. Of a file that is attached to a program, File.Close does.
func (f *DataFile) Close() error { return f.source.from.Close() }

func (f *DataFile) find(key string) (Data, bool) {
	d, ok := f.named[key]
	return d, ok
}
