package stepping

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/natefinch/atomic"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/measure"
	"gpuscope/internal/mapfile"
	"gpuscope/ops/kind"
	"gpuscope/session"
	"gpuscope/trace"
)

// CeilingCache is the folder in which the measured ceilings of devices are stored, with one file for each
// device and driver. If it is "", no ceilings are stored.
type CeilingCache string

// cachedCeilings is the content of one file in the cache. Version identifies the method by which the ceilings
// were measured.
type cachedCeilings struct {
	Version  string          `json:"version"`
	Device   string          `json:"device"`
	Backend  string          `json:"backend"`
	Driver   string          `json:"driver"`
	Ceilings *trace.Ceilings `json:"ceilings"`
}

// maxCeilingsFile is the maximum size in bytes that a file in the cache may have. Files that gpuscope writes
// are much smaller.
const maxCeilingsFile = 1 << 16

// of returns the path of a device's file in the cache, and the fields of this file that identify the device
// and the method of measurement.
func (c CeilingCache) of(d *trace.Device) (head cachedCeilings, path string, err error) {
	version, err := ceilingsVersion()
	head = cachedCeilings{Version: version, Device: d.Name, Backend: d.Backend, Driver: d.Driver}
	sum := sha256.Sum256([]byte(d.Name + "\x00" + d.Backend + "\x00" + d.Driver))
	return head, filepath.Join(string(c), "ceilings-"+hex.EncodeToString(sum[:8])+".json"), err
}

// ceilingsVersion returns a hash that identifies the method by which ceilings are measured. The hash covers
// the source of the kernels and measure.CeilingsVersion, a number that we increase whenever the rest of the
// method changes.
func ceilingsVersion() (string, error) {
	k, err := kind.Ceilings()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprint(sum, measure.CeilingsVersion, k.Fill.Source, k.Copy.Source, k.FMA.Source, k.Empty.Source)
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// load returns the stored ceilings of a device, or nil if there are none. It also returns nil if the file is
// invalid, truncated, or written by another version, so that the device is measured again.
func (c CeilingCache) load(d *trace.Device) *trace.Ceilings {
	if c == "" {
		return nil
	}
	want, path, err := c.of(d)
	if err != nil {
		return nil
	}
	data, err := mapfile.Read(path, maxCeilingsFile)
	if err != nil {
		return nil
	}
	var got cachedCeilings
	if json.Unmarshal(data, &got) != nil || got.Ceilings == nil || !plausible(got.Ceilings) {
		return nil
	}
	found := got.Ceilings
	if got.Ceilings = nil; got != want {
		return nil
	}
	return found
}

// plausible reports whether all values in c are values that a measurement can produce.
func plausible(c *trace.Ceilings) bool {
	pass, ok := c.TimedPassNS.NS()
	dispatch, both := c.DispatchNS.NS()
	good := ok && both && pass > 0 && dispatch >= 0 && c.FlopsPerS > 0 && c.FillWorkgroups > 0 && c.N > 0 &&
		len(c.CopyBytesPerS) > 0
	for _, r := range c.CopyBytesPerS {
		good = good && r.Bytes > 0 && r.PerS > 0
	}
	return good
}

// store writes the ceilings of a device to its file. It replaces the file atomically.
func (c CeilingCache) store(d *trace.Device, found *trace.Ceilings) (err error) {
	if c == "" {
		return nil
	}
	file, path, err := c.of(d)
	if err != nil {
		return err
	}
	file.Ceilings = found
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(c), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(string(c), "ceilings-*.partial")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temp.Name())
		}
	}()
	if _, err = temp.Write(append(data, '\n')); err != nil {
		temp.Close()
		return err
	}
	if err = temp.Close(); err != nil {
		return err
	}
	return atomic.ReplaceFile(temp.Name(), path)
}

// MeasureOn measures the ceilings of a device and stores them in the cache. If `known` is not nil, each
// ceiling in the result is the better of the measured and the known value. If the result cannot be stored,
// MeasureOn passes the error to `warn` and still returns the ceilings.
func MeasureOn(ctx context.Context, dev gpu.Device, cache CeilingCache, known *trace.Ceilings,
	progress engine.Progress, warn func(error),
) (*trace.Ceilings, error) {
	k, err := kind.Ceilings()
	if err != nil {
		return nil, err
	}
	found, err := measure.Ceilings(ctx, dev, k, progress)
	if err != nil {
		return nil, err
	}
	if known != nil {
		found = found.Best(known)
	}
	described := engine.DescribeDevice(dev.Info())
	if err := cache.store(&described, found); err != nil {
		warn(fmt.Errorf("cannot store the ceilings of %s for the next run: %w", described.Name, err))
	}
	return found, nil
}

// MeasureCeilings opens the device that `device` selects by its number or a part of its name. It measures
// the ceilings of the device: the best rates and times that the device can reach. If `cache` is not "", it
// stores the ceilings in the folder `cache`.
func MeasureCeilings(ctx context.Context, d gpu.Driver, device, cache string, progress engine.Progress,
	warn func(error),
) (*trace.Ceilings, error) {
	dev, _, err := OpenDevice(d, device)
	if err != nil {
		return nil, err
	}
	defer dev.Release()
	return MeasureOn(ctx, dev, CeilingCache(cache), nil, progress, warn)
}

// CachedCeilings returns the ceilings of a device that are stored in the folder `cache`, or nil.
func CachedCeilings(device *trace.Device, cache string) *trace.Ceilings {
	return CeilingCache(cache).load(device)
}

// ceilings measures the ceilings of the session's device.
func (s *Session) ceilings(ctx context.Context, _ *session.Reply) error {
	warn := func(err error) {
		s.sender.Send(func() session.Event {
			return session.Event{Log: &session.Log{Level: "warn", Text: err.Error()}}
		})
	}
	found, err := MeasureOn(ctx, s.Dev, CeilingCache(s.cache), nil, s.Progress(), warn)
	if err != nil {
		return err
	}
	if speed := s.ProbeClock(); s.Slow {
		warn(fmt.Errorf("the GPU clock ran at only %.2f times its warm speed while the ceilings were measured; measure the ceilings again",
			speed))
	}
	s.Record(trace.Record{Ceilings: found})
	return nil
}

// canMeasure returns an error if the ceilings of the device cannot be measured.
func (s *Session) canMeasure() error {
	if !s.Timed() {
		return session.Refusef("cannot measure the ceilings: this device has no timestamps")
	}
	return nil
}
