package gpu

import (
	"errors"
	"strings"
	"testing"
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
	for _, tt := range []struct {
		name     string
		adapters []AdapterInfo
		want     string
		index    int
		reason   string
		err      string
	}{
		{"best kind wins over order", all, "", 2, "the first discrete adapter of 5", ""},
		{"integrated before cpu", all[:2], "", 1, "the first integrated adapter of 2", ""},
		{"cpu when it is all there is", all[:1], "", 0, "the only adapter", ""},
		{"unknown comes last", []AdapterInfo{all[3], all[0]}, "", 1, "the first cpu adapter of 2", ""},
		{"number", all, "0", 0, "number 0 was asked for", ""},
		{"name part in any case", all, "LLVM", 0, `"LLVM" is in its name`, ""},
		{
			"ambiguous name prefers the kind, then the order", all, "nvidia", 2,
			`the first discrete adapter of the 3 with "nvidia" in the name`, "",
		},
		{
			"number out of range", all[:1], "1", 0, "",
			"no WebGPU adapter with number 1; available adapters: 0 llvmpipe (LLVM 15.0.6, 256 bits) (vulkan, cpu)",
		},
		{"negative number", all[:1], "-1", 0, "", "no WebGPU adapter with number -1"},
		{
			"no such name", all[1:3], "amd", 0, "",
			`no WebGPU adapter with "amd" in its name; available adapters: 0 Intel UHD 770 (vulkan, integrated); 1 NVIDIA H200 (vulkan, discrete)`,
		},
		{"nothing there", nil, "", 0, "", "no WebGPU adapter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			index, reason, err := Choose(tt.adapters, tt.want)
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) || !errors.Is(err, ErrNoAdapter) {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || index != tt.index || reason != tt.reason {
				t.Fatalf("Choose = %d, %q, %v; want %d, %q", index, reason, err, tt.index, tt.reason)
			}
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
