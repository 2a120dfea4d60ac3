package ops

import (
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
)

// device is the device of the test.
func device(t *testing.T) gpu.Device { return gputest.Open(t) }
