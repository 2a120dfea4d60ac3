package command

import (
	"io/fs"
	"os"
	"path/filepath"

	"gpuscope/trace"
)

const (
	sampledSteps      = 64      // largest number of steps that ExportSize writes
	sampledDispatches = 1 << 15 // largest number of dispatches of these steps, unless two steps have more
)

// ExportSize returns the approximate size in bytes of the file or folder that trace.WriteFile would write to
// the path, or 0 if it is not known. It writes only some of the steps, to a temporary folder, so its time
// does not grow with the length of the trace.
func ExportSize(path string, t *trace.Trace) int64 {
	n, dispatches := len(t.Steps), 0
	for i := range t.Steps {
		dispatches += len(t.Steps[i].Dispatches)
	}
	most := sampledSteps
	if dispatches > 0 {
		most = min(most, max(2, sampledDispatches*n/dispatches))
	}
	if n <= most {
		return writtenSize(path, t)
	}
	// Two samples tell the size of a step from that of the head.
	less, more := writtenSize(path, sampled(t, most/2)), writtenSize(path, sampled(t, most))
	return more + (more-less)*int64(n-most)/int64(most-most/2)
}

// sampled returns the trace with only n of its steps, spread over the run.
func sampled(t *trace.Trace, n int) *trace.Trace {
	sample := *t
	sample.Steps = make([]trace.Step, n)
	for i := range sample.Steps {
		sample.Steps[i] = t.Steps[i*len(t.Steps)/n]
	}
	return &sample
}

// writtenSize writes a trace to a temporary file in the format of the path, and returns the size in bytes, or
// 0 if the trace cannot be written.
func writtenSize(path string, t *trace.Trace) (size int64) {
	dir, err := os.MkdirTemp("", "gpuscope-size-")
	if err != nil {
		return 0
	}
	defer os.RemoveAll(dir)
	to := filepath.Join(dir, filepath.Base(path))
	if err := trace.WriteFile(to, t); err != nil {
		return 0
	}
	err = filepath.WalkDir(to, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return 0
	}
	return size
}
