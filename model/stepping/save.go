package stepping

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/internal/printable"
	"gpuscope/session"
)

// The command save writes a whole value to a file. The session writes the file itself, so that the elements
// do not have to pass through the pipe to the front end. It holds one piece of the elements at a time.

// saveFormat is a file format for values. `write` writes the elements in `list`. `first` is the index of the
// first of these elements in the value.
type saveFormat struct {
	suffix string
	header func(t npy.Type, dims []int) []byte
	write  func(w *bufio.Writer, t npy.Type, columns, first int, list []float64) error
}

var saveFormats = []saveFormat{
	{
		".npy", npy.Header,
		func(w *bufio.Writer, t npy.Type, _, _ int, list []float64) error { return writeBinary(w, t, list) },
	},
	{".csv", func(npy.Type, []int) []byte { return nil }, writeText},
}

// beginSave checks a save command before any step is run.
func (s *Session) beginSave(c session.Command) (Work, error) {
	if c.Save == nil || c.Save.Path == "" || c.At == nil {
		return nil, session.Refusef("save: no value or no file given")
	}
	at, path := *c.At, filepath.Clean(c.Save.Path)
	var format *saveFormat
	var known []string
	for i, f := range saveFormats {
		known = append(known, f.suffix)
		if strings.EqualFold(filepath.Ext(path), f.suffix) {
			format = &saveFormats[i]
		}
	}
	if format == nil {
		return nil, session.Refusef("save: unknown format of %s; known: %s", printable.Short(path, 160),
			strings.Join(known, ", "))
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, session.Refusef("save: %s exists; choose another name", printable.Short(path, 160))
	}
	steps, err := s.stepsOf(c.Kind, at)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *session.Reply) error {
		out := &session.Tensor{}
		n, err := s.open(ctx, at, steps, out)
		if err != nil {
			return err
		}
		typ := s.arrayType(at, n)
		size, err := writeWhole(path, func(w io.Writer) error { return s.save(ctx, w, at, n, typ, format) })
		if err != nil {
			return fmt.Errorf("save: %w", err)
		}
		r.Saved = &session.Saved{Path: path, Type: typ.NumPy(), Dims: n.dims, Bytes: size}
		return nil
	}, nil
}

// arrayType returns the type of the elements in a file: the type of the value, float32 for decoded weights,
// and float64 for differences, because they may need more digits than their operands.
func (s *Session) arrayType(at session.LookAt, n opened) npy.Type {
	info := s.Graph.Value(at.Value)
	switch {
	case n.pair != nil:
		return npy.Float64
	case n.dtype != info.DType.String(): // weights, decoded from their storage format
		return npy.Float32
	}
	return map[graph.DType]npy.Type{
		graph.F32: npy.Float32, graph.F16: npy.Float16, graph.I32: npy.Int32, graph.U32: npy.Uint32,
		graph.I8: npy.Int8, graph.Q4: npy.Uint8,
	}[info.DType]
}

// save writes all elements of a value.
func (s *Session) save(ctx context.Context, to io.Writer, at session.LookAt, n opened, typ npy.Type,
	f *saveFormat,
) error {
	w := bufio.NewWriterSize(to, 1<<16)
	if _, err := w.Write(f.header(typ, n.dims)); err != nil {
		return err
	}
	columns := 1
	if len(n.dims) > 0 {
		columns = max(1, n.dims[len(n.dims)-1])
	}
	sc := &scan{
		numbers: n.numbers, ctx: ctx, passes: 1, tell: s.Progress(),
		phase: "writing " + s.Graph.Value(at.Value).Name,
	}
	err := sc.pieces(n.read, func(first int, list []float64) error {
		return f.write(w, typ, columns, first, list)
	})
	return errors.Join(err, w.Flush())
}

// writeBinary writes elements as NumPy stores them, little-endian.
func writeBinary(w *bufio.Writer, t npy.Type, list []float64) error {
	var b [8]byte
	for _, v := range list {
		switch t {
		case npy.Float64:
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
		case npy.Float32:
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(v)))
		case npy.Float16:
			binary.LittleEndian.PutUint16(b[:], float16.Fromfloat32(float32(v)).Bits())
		case npy.Int32:
			binary.LittleEndian.PutUint32(b[:], uint32(int32(v)))
		case npy.Uint32:
			binary.LittleEndian.PutUint32(b[:], uint32(v))
		case npy.Int8:
			b[0] = byte(int8(v))
		default:
			b[0] = byte(v)
		}
		if _, err := w.Write(b[:t.Size()]); err != nil {
			return err
		}
	}
	return nil
}

// writeText writes elements as CSV without a header, one line for each row. Each number has as few digits as
// possible, but enough to read back exactly the same number of its type. Numbers that are not finite are
// written as nan, inf and -inf, which NumPy and pandas read.
func writeText(w *bufio.Writer, t npy.Type, columns, first int, list []float64) error {
	form, bits := byte('f'), 64 // integers
	switch t {
	case npy.Float32, npy.Float16:
		form, bits = 'g', 32
	case npy.Float64:
		form = 'g'
	}
	b := make([]byte, 0, 32)
	for i, v := range list {
		switch b = b[:0]; {
		case math.IsNaN(v):
			b = append(b, "nan"...)
		case math.IsInf(v, 1):
			b = append(b, "inf"...)
		case math.IsInf(v, -1):
			b = append(b, "-inf"...)
		default:
			b = strconv.AppendFloat(b, v, form, -1, bits)
		}
		if (first+i+1)%columns == 0 {
			b = append(b, '\n')
		} else {
			b = append(b, ',')
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// writeWhole calls `write` to write a new file, and returns its size in bytes. The file appears under its
// name when it is complete. If writeWhole returns an error, it leaves no file.
func writeWhole(path string, write func(io.Writer) error) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.partial")
	if err != nil {
		return 0, err
	}
	err = write(f)
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		if _, exists := os.Lstat(path); exists == nil {
			err = fmt.Errorf("%s exists; choose another name", path)
		} else {
			err = os.Rename(f.Name(), path)
		}
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
		return 0, err
	}
	return size, nil
}
