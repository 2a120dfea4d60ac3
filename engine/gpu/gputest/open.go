// Package gputest opens a GPU for the tests of other packages, and holds the test suite that every driver of
// engine/gpu passes. Only tests import it; it imports engine/gpu/wgpu on their behalf.
package gputest

import (
	"errors"
	"os"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/wgpu"
)

// Open opens the preferred adapter, or the one that GPUSCOPE_DEVICE names (as --device does), and releases
// the device when the test ends. Where there is no adapter the test is skipped, and fails when CI is "true".
// With GPUSCOPE_TEST_GPU=off (make quick) it is always skipped.
func Open(t testing.TB) gpu.Device {
	t.Helper()
	if os.Getenv("GPUSCOPE_TEST_GPU") == "off" {
		t.Skip("GPU tests are off (GPUSCOPE_TEST_GPU=off)")
	}
	dev, err := open()
	if err != nil {
		if errors.Is(err, gpu.ErrNoAdapter) && os.Getenv("CI") != "true" {
			t.Skipf("needs a GPU or a software Vulkan driver: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(dev.Release)
	t.Attr("adapter", dev.Info().Name) // how the test summary knows what ran on a GPU
	return dev
}

func open() (gpu.Device, error) {
	driver := wgpu.New()
	adapters, err := driver.Adapters()
	if err != nil {
		return nil, err
	}
	index, _, err := gpu.Choose(adapters, os.Getenv("GPUSCOPE_DEVICE"))
	if err != nil {
		return nil, err
	}
	return driver.Open(index)
}
