package arch

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// joinMXFP4 replaces each pair of tensors NAME_blocks and NAME_scales by one tensor NAME in ggml's MXFP4
// layout. Folders of gpt-oss contain such pairs. NAME_blocks has dims [..., n, 16]: each row consists of n
// blocks of 16 bytes. A block contains the 4-bit values of 32 columns, and each byte those of two adjacent
// columns. NAME_scales has dims [..., n]: it contains one scale per block. The result has dims [..., 32*n].
func joinMXFP4(folder string, tensors []*Tensor) ([]*Tensor, error) {
	scales := map[string]*Tensor{}
	for _, t := range tensors {
		if name, ok := strings.CutSuffix(t.Name, "_scales"); ok && t.Type == "U8" {
			scales[name] = t
		}
	}
	var joined []*Tensor
	paired := map[*Tensor]bool{}
	for _, t := range tensors {
		name, ok := strings.CutSuffix(t.Name, "_blocks")
		if !ok || t.Type != "U8" || scales[name] == nil {
			joined = append(joined, t)
			continue
		}
		s := scales[name]
		if !slices.Equal(t.Dims, append(slices.Clone(s.Dims), 16)) {
			return nil, fmt.Errorf("%s: tensor %s has shape %s, but its scales, tensor %s, have shape %s; want the shape of the scales plus a last dim of size 16",
				folder, t.Name, printable.Dims(t.Dims), s.Name, printable.Dims(s.Dims))
		}
		paired[s] = true
		dims := slices.Clone(s.Dims)
		dims[len(dims)-1] *= 32
		joined = append(joined, &Tensor{
			Name: name, Type: "MXFP4", Dims: dims, Size: t.Size + s.Size,
			Bytes: func() ([]byte, error) {
				blocks, err := t.Bytes()
				if err != nil {
					return nil, err
				}
				scales, err := s.Bytes()
				return packMXFP4(blocks, scales), err
			},
		})
	}
	return slices.DeleteFunc(joined, func(t *Tensor) bool { return paired[t] }), nil
}

// packMXFP4 returns blocks in ggml's MXFP4 layout: a scale, and then 16 bytes. The low 4 bits of byte j are
// the value of column j. The high 4 bits are the value of column j + 16.
func packMXFP4(blocks, scales []byte) []byte {
	out := make([]byte, 0, len(blocks)+len(scales))
	for i, scale := range scales {
		out = append(out, scale)
		columns := blocks[16*i:][:16]
		for j := range 16 {
			low, high := columns[j/2]>>(j%2*4)&15, columns[8+j/2]>>(j%2*4)&15
			out = append(out, low|high<<4)
		}
	}
	return out
}
