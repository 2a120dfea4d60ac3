package describe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/trace/table"
)

// DataInfo describes the contents of a .ptd file.
type DataInfo struct {
	DataFile
	Named []NamedData `json:"named_data"` // blobs by key
}

// NamedData is a blob in a .ptd file.
type NamedData struct {
	Key    string `json:"key"`    // key by which programs refer to the blob
	Offset int64  `json:"offset"` // offset in the file
	Bytes  int64  `json:"bytes"`  // size in bytes
	// Type is the element type of a tensor. It is empty for other blobs, such as constants of delegates.
	Type     string `json:"type,omitempty"`
	Dims     []int  `json:"dims,omitempty"`      // shape of the tensor
	DimOrder []int  `json:"dim_order,omitempty"` // dims from the outermost to the innermost in memory
	// Same is set if an earlier blob has the same bytes. It is the key of the first such blob.
	Same string `json:"same_as,omitempty"`
}

// OfData describes a data file.
func OfData(f *pte.DataFile) *DataInfo {
	info := &DataInfo{DataFile: dataFile(f), Named: []NamedData{}}
	first := map[pte.Data]string{}
	for i := range f.Named {
		n := &f.Named[i]
		d := NamedData{Key: n.Key, Bytes: n.Data.Size()}
		_, d.Offset = n.Data.Place()
		if l := n.Layout; l != nil {
			d.Type, d.Dims, d.DimOrder = l.Type.String(), slices.Clone(l.Sizes), slices.Clone(l.DimOrder)
		}
		if key, ok := first[n.Data]; ok {
			d.Same = key
		} else if n.Data.Size() > 0 {
			first[n.Data] = n.Key
		}
		info.Named = append(info.Named, d)
	}
	return info
}

func dataFile(f *pte.DataFile) DataFile {
	d := DataFile{File: f.Name(), Keys: len(f.Named)}
	for _, s := range f.Segments {
		d.Bytes += s.Size()
	}
	return d
}

// DataText writes a readable table for each data file to w.
func DataText(ctx context.Context, w io.Writer, files ...*DataInfo) error {
	var b bytes.Buffer
	for i, f := range files {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s · ExecuTorch data file · %s · %s\n\n", printable.Clean(f.File),
			table.Plural(f.Keys, "constant"), table.Memory(f.Bytes))
		keys := list("Constants by key", f.Named,
			column("key", func(n *NamedData) string { return name(n.Key) }),
			number("bytes", "B", func(n *NamedData) int64 { return n.Bytes }),
			column("type", (*NamedData).layout),
			column("offset", func(n *NamedData) string { return strconv.FormatInt(n.Offset, 10) }),
			column("same as", func(n *NamedData) string { return name(n.Same) }))
		if err := write(ctx, &b, keys); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// layout returns the type and the shape of a tensor. If the tensor is not row-major in memory, layout
// also returns the order of the dims.
func (n *NamedData) layout() string {
	if n.Type == "" {
		return ""
	}
	text := n.Type + " " + dims(n.Dims)
	for i, d := range n.DimOrder {
		if d != i {
			return text + " in dim order " + dims(n.DimOrder)
		}
	}
	return text
}
