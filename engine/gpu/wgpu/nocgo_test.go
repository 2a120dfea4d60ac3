//go:build !cgo

package wgpu

import (
	"errors"
	"strings"
	"testing"

	"gpuscope/engine/gpu"
)

func TestABuildWithoutCGOSaysSo(t *testing.T) {
	t.Parallel()
	var driver gpu.Driver = New()
	_, err := driver.Adapters()
	if _, again := driver.Open(0); !errors.Is(err, gpu.ErrNoAdapter) || again != err ||
		!strings.Contains(err.Error(), "has no cgo") {
		t.Errorf("%v; %v", err, again)
	}
}
