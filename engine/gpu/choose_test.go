package gpu

import (
	"errors"
	"testing"

	"gpuscope/internal/wordingtest"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	all := []AdapterInfo{
		{Name: "llvmpipe (LLVM 15.0.6, 256 bits)", Backend: "vulkan", Type: CPU},
		{Name: "Intel UHD 770", Backend: "vulkan", Type: Integrated},
		{Name: "NVIDIA H200", Backend: "vulkan", Type: Discrete},
		{Name: "NVIDIA H200", Backend: "gl", Type: UnknownAdapter},
		{Name: "NVIDIA T4", Backend: "vulkan", Type: Discrete},
	}
	golden := wordingtest.New(t)
	for _, tt := range []struct {
		name     string
		adapters []AdapterInfo
		want     string
		index    int // -1: none
	}{
		{"best kind wins over order", all, "", 2},
		{"integrated before cpu", all[:2], "", 1},
		{"cpu when it is all there is", all[:1], "", 0},
		{"unknown comes last", []AdapterInfo{all[3], all[0]}, "", 1},
		{"number", all, "0", 0},
		{"name part in any case", all, "LLVM", 0},
		{"ambiguous name prefers the kind, then the order", all, "nvidia", 2},
		{"number out of range", all[:1], "1", -1},
		{"negative number", all[:1], "-1", -1},
		{"no such name", all[1:3], "amd", -1},
		{"nothing there", nil, "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			index, reason, err := Choose(tt.adapters, tt.want)
			if tt.index < 0 {
				if !errors.Is(err, ErrNoAdapter) {
					t.Fatalf("error %v, want %v", err, ErrNoAdapter)
				}
				golden.Error(tt.name, err)
				return
			}
			if err != nil || index != tt.index {
				t.Fatalf("Choose = %d, %q, %v; want %d", index, reason, err, tt.index)
			}
			golden.Text(tt.name, reason)
		})
	}
}

func TestEnumsPrintTheirNames(t *testing.T) {
	t.Parallel()
	if got := Discrete.String() + " " + CPU.String() + " " +
		AdapterType(200).String(); got != "discrete cpu unknown" {
		t.Errorf("adapter types print as %s", got)
	}
	if got := Read.String() + " " + ReadWrite.String() + " " +
		Params.String(); got != "read read_write uniform" {
		t.Errorf("accesses print as %s", got)
	}
}
