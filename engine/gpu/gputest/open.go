// Package gputest opens a GPU for the tests of other packages. The package also contains the test suite
// that every driver of engine/gpu must pass. Only tests import this package. It imports engine/gpu/wgpu, so
// that these tests need not import it themselves.
package gputest

import (
	"errors"
	"os"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/wgpu"
)

// Open opens the preferred adapter, or the adapter named by GPUSCOPE_DEVICE (in the format of --device),
// and releases the device when the test ends. Without an adapter the test is skipped, or fails if CI is
// "true". With GPUSCOPE_TEST_GPU=off (make quick) the test is always skipped.
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
	t.Attr("adapter", dev.Info().Name) // shows the test summary which tests ran on a GPU
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
