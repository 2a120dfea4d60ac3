//go:build !cgo

package wgpu

import (
	"fmt"

	"gpuscope/engine/gpu"
)

// Driver is the driver of a build without GPU support.
type Driver struct{}

// New returns the driver of this build, which finds no adapters.
func New() Driver { return Driver{} }

var errNoCGO = fmt.Errorf("%w: this build of gpuscope has no cgo, so it can open traces and plan graphs but cannot use a GPU. To run a model, build gpuscope with CGO_ENABLED=1 and a C compiler.", gpu.ErrNoAdapter)

// Adapters implements gpu.Driver.
func (Driver) Adapters() ([]gpu.AdapterInfo, error) { return nil, errNoCGO }

// Open implements gpu.Driver.
func (Driver) Open(int) (gpu.Device, error) { return nil, errNoCGO }
