package arch

import (
	"slices"
	"strings"
	"testing"
)

// bytesTensor returns a tensor of bytes, as safetensors files have them.
func bytesTensor(name string, data []byte, dims ...int) *Tensor {
	return &Tensor{
		Name: name, Type: "U8", Dims: dims, Size: len(data),
		Bytes: func() ([]byte, error) { return data, nil },
	}
}

// In the folder, column c of a block is a nibble of byte c/2. In ggml's block, it is a nibble of byte c%16.
func TestBlocksOfAFolderBecomeBlocksOfGGML(t *testing.T) {
	const blocks = 6
	var data, scales []byte
	for i := range blocks {
		scales = append(scales, byte(120+i))
		for j := range 16 {
			data = append(data, byte(37*i+59*j))
		}
	}
	other := bytesTensor("other", []byte{1}, 1)
	tensors, err := joinMXFP4("folder", []*Tensor{
		bytesTensor("m_blocks", data, 1, 3, 2, 16), other, bytesTensor("m_scales", scales, 1, 3, 2),
	})
	if err != nil || len(tensors) != 2 || tensors[1] != other {
		t.Fatalf("got %v, %v", tensors, err)
	}
	m := tensors[0]
	if m.Name != "m" || m.Type != "MXFP4" || !slices.Equal(m.Dims, []int{1, 3, 64}) || m.Size != 17*blocks {
		t.Errorf("got %+v", m)
	}
	packed, err := m.Bytes()
	if err != nil || len(packed) != 17*blocks {
		t.Fatalf("%d bytes, %v", len(packed), err)
	}
	for i := range blocks {
		block := packed[17*i:][:17]
		if block[0] != scales[i] {
			t.Errorf("block %d has scale %d, want %d", i, block[0], scales[i])
		}
		for c := range 32 {
			want := data[16*i+c/2] >> (c % 2 * 4) & 15
			if got := block[1+c%16] >> (c / 16 * 4) & 15; got != want {
				t.Errorf("column %d of block %d is %d, want %d", c, i, got, want)
			}
		}
	}
}

func TestBlocksWithoutTheirScalesAreRefusedOrLeft(t *testing.T) {
	blocks := bytesTensor("m_blocks", make([]byte, 32), 2, 1, 16)
	_, err := joinMXFP4("folder", []*Tensor{blocks, bytesTensor("m_scales", make([]byte, 3), 3, 1)})
	if err == nil || !strings.Contains(err.Error(), "m_scales") {
		t.Errorf("scales of another shape: %v", err)
	}
	floats := &Tensor{Name: "m_scales", Type: "F32", Dims: []int{2, 1}}
	if left, err := joinMXFP4("folder", []*Tensor{blocks, floats}); err != nil || len(left) != 2 {
		t.Errorf("scales that are no bytes: %v, %v", left, err)
	}
}
