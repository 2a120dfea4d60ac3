//go:build cgo

package wgpu

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gpuscope/engine/gpu"
)

// Without a Vulkan driver the error says what to install, whether or not EGL is installed.
func TestNoAdapterSaysWhatToInstall(t *testing.T) {
	const child = "GPUSCOPE_TEST_NO_ADAPTER"
	if os.Getenv(child) == "" {
		t.Setenv("VK_ICD_FILENAMES", os.DevNull)
		t.Setenv("VK_DRIVER_FILES", os.DevNull)
		childTest(t, child)
		t.Setenv("__EGL_VENDOR_LIBRARY_FILENAMES", os.DevNull)
		childTest(t, child)
		return
	}
	list, err := New().Adapters()
	if !errors.Is(err, gpu.ErrNoAdapter) ||
		!strings.Contains(err.Error(), "apt-get install libvulkan1 mesa-vulkan-drivers") {
		t.Errorf("adapters %+v, %v", list, err)
	}
	if _, err := New().Open(0); !errors.Is(err, gpu.ErrNoAdapter) {
		t.Errorf("open: %v", err)
	}
}

// Running out of memory is an error of NewBuffer. Without an error scope for it, the library would abort the
// process. On a software device the test provokes it by limiting the address space.
func TestOutOfMemoryIsAnError(t *testing.T) {
	const child = "GPUSCOPE_TEST_OOM"
	dev := openAny(t)
	if dev.Info().Type != gpu.CPU {
		t.Skip("fills the memory of a software device only")
	}
	if os.Getenv(child) == "" {
		if out := childTest(t, child); !strings.Contains(out, "PASS") {
			t.Error(out)
		}
		return
	}
	limit := unix.Rlimit{Cur: 4 << 30, Max: 4 << 30}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		t.Skip(err)
	}
	var err error
	for range 64 {
		if _, err = dev.NewBuffer("large", 512<<20, gpu.Storage); err != nil {
			break
		}
	}
	if !errors.Is(err, gpu.ErrOutOfMemory) || err.Error() != "buffer large: "+gpu.ErrOutOfMemory.Error() {
		t.Errorf("buffers over the limit: %v", err)
	}
	x, _, _ := tiny(t, dev)
	if err := dev.Write(x, 0, make([]byte, 4)); err != nil {
		t.Errorf("after running out of memory: %v", err)
	}
}
