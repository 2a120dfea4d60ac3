package model

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
	"gpuscope/ops"
	"gpuscope/session"
	"gpuscope/trace"
)

// ceilingCache is the folder where the ceilings of devices are kept, a file for each device and driver. The
// empty one keeps nothing.
type ceilingCache string

// cachedCeilings is such a file. Version is that of how they were measured.
type cachedCeilings struct {
	Version  string          `json:"version"`
	Device   string          `json:"device"`
	Backend  string          `json:"backend"`
	Driver   string          `json:"driver"`
	Ceilings *trace.Ceilings `json:"ceilings"`
}

// maxCeilingsFile is far over what such a file holds.
const maxCeilingsFile = 1 << 16

// of is the file's head for a device, and its name.
func (c ceilingCache) of(d *trace.Device) (head cachedCeilings, path string, err error) {
	version, err := ceilingsVersion()
	head = cachedCeilings{Version: version, Device: d.Name, Backend: d.Backend, Driver: d.Driver}
	sum := sha256.Sum256([]byte(d.Name + "\x00" + d.Backend + "\x00" + d.Driver))
	return head, filepath.Join(string(c), "ceilings-"+hex.EncodeToString(sum[:8])+".json"), err
}

// ceilingsVersion tells ways of measuring apart: by the kernels, and by a number that rises with the rest.
func ceilingsVersion() (string, error) {
	k, err := ops.Ceilings()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprint(sum, measure.CeilingsVersion, k.Fill.Source, k.Copy.Source, k.FMA.Source, k.Empty.Source)
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// load is what is known of a device; nil where nothing is. A file that is of another version, or cut short,
// or no such file at all, is as good as none: its device is measured again.
func (c ceilingCache) load(d *trace.Device) *trace.Ceilings {
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

// plausible says whether ceilings are such as a measurement gives.
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

// store keeps what was measured. The file is there whole or not at all.
func (c ceilingCache) store(d *trace.Device, found *trace.Ceilings) (err error) {
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

// measureCeilings measures a device and keeps what it found, or where that is better what the same run had
// found before; known is nil where there is none. What could not be kept is told to warn, and no error: it is
// known now.
func measureCeilings(ctx context.Context, dev gpu.Device, cache ceilingCache, known *trace.Ceilings,
	progress engine.Progress, warn func(error),
) (*trace.Ceilings, error) {
	k, err := ops.Ceilings()
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
		warn(fmt.Errorf("keep the ceilings of %s for the next run: %w", described.Name, err))
	}
	return found, nil
}

// MeasureCeilings opens the device that a number or a part of a name says, and measures what it can do at
// best. It is kept in cache, "" for nowhere.
func MeasureCeilings(ctx context.Context, d gpu.Driver, device, cache string, progress engine.Progress,
	warn func(error),
) (*trace.Ceilings, error) {
	dev, _, err := openDevice(d, device)
	if err != nil {
		return nil, err
	}
	defer dev.Release()
	return measureCeilings(ctx, dev, ceilingCache(cache), nil, progress, warn)
}

// CachedCeilings are those of a device that were kept in cache; nil where there are none.
func CachedCeilings(device *trace.Device, cache string) *trace.Ceilings {
	return ceilingCache(cache).load(device)
}

// ceilings measures the session's device between two steps.
func (s *live) ceilings(ctx context.Context, _ *session.Reply) error {
	warn := func(err error) {
		s.teller.tell(func() session.Event {
			return session.Event{Log: &session.Log{Level: "warn", Text: err.Error()}}
		})
	}
	found, err := measureCeilings(ctx, s.runner.Dev, ceilingCache(s.m.options.Cache), nil, s.progress(), warn)
	if err != nil {
		return err
	}
	if speed := s.runner.ProbeClock(); s.runner.Slow {
		warn(fmt.Errorf("the ceilings are of a clock at %.2f of the warm one: measure them again", speed))
	}
	s.record(trace.Record{Ceilings: found})
	return nil
}

// canMeasure says why the device cannot be measured.
func (s *live) canMeasure() error {
	if !s.runner.Timed() {
		return session.Refusef("ceilings are GPU times, and this device has no timestamps")
	}
	return nil
}
