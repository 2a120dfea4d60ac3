package gputest

import (
	"encoding/binary"
	"math"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
)

// A kernel's result shows whether a device flushes the smallest halves to zero. The check leaves no objects
// on the device.
func TestADeviceIsAskedForItsSmallestHalves(t *testing.T) {
	for _, gives := range []float32{0, 0x1p-24} {
		dev := fake.New(fake.Options{})
		dev.OnDispatch = func(d fake.Dispatch) {
			binary.LittleEndian.PutUint32(d.Bound[1].Bytes, math.Float32bits(gives))
		}
		flushes, err := gpu.FlushesHalves(dev)
		if err != nil || flushes != (gives == 0) {
			t.Errorf("a device that gives %g flushes: %v, %v", gives, flushes, err)
		}
		if n := dev.Live().Total(); n != 0 {
			t.Errorf("%d objects are left", n)
		}
		dev.Release()
	}
}
