//go:build !cgo

package wgpu

import (
	"fmt"

	"gpuscope/engine/gpu"
)

// Driver is the driver of a build that has no GPU.
type Driver struct{}

// New is the driver of this build, which finds nothing.
func New() Driver { return Driver{} }

var errNoCGO = fmt.Errorf("%w: this gpuscope was built without cgo and has no GPU; it opens traces and plans graphs, but to run a model build it with CGO_ENABLED=1 and a C compiler", gpu.ErrNoAdapter)

// Adapters implements gpu.Driver.
func (Driver) Adapters() ([]gpu.AdapterInfo, error) { return nil, errNoCGO }

// Open implements gpu.Driver.
func (Driver) Open(int) (gpu.Device, error) { return nil, errNoCGO }
