package rules

import (
	"errors"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/internal/wordingtest"
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
	if !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("4 bytes more: %v", err)
	}
	wordingtest.New(t).Error("4 bytes more", err)
}
