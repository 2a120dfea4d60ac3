package rules

import (
	"errors"
	"testing"

	"gpuscope/engine/gpu"
)

func TestTooMuchWorkgroupMemoryIsRefused(t *testing.T) {
	t.Parallel()
	dev := Device{Limits: gpu.DefaultLimits()}
	desc := gpu.PipelineDesc{Label: "tile", Source: "var<workgroup> a: array<f32, 4096>;"}
	if _, err := dev.Pipeline(desc); err != nil {
		t.Errorf("16 KiB: %v", err)
	}
	desc.Source = "var<workgroup> a: array<f32, 4097>;"
	_, err := dev.Pipeline(desc)
	if !errors.Is(err, gpu.ErrUnsupported) ||
		err.Error() != "pipeline tile: needs 16388 bytes of workgroup memory, but the device has 16384: not supported by this device" {
		t.Errorf("4 bytes more: %v", err)
	}
}
