//go:build cgo

package wgpu

import (
	"fmt"
	"slices"

	"gpuscope/engine/gpu/rules"
)

// recording implements gpu.Recording. Recordings that have ended are reused.
type recording struct {
	rules.Recording
	dev      *device
	commands handle // nil after the submit
	targets  []*hostBuffer
	written  uint64 // device.written when the recording was submitted
	sent     uint64 // device.sent when the recording was submitted
}

// recording returns a recording that is not in use.
func (d *device) recording() *recording {
	i := slices.IndexFunc(d.recordings, func(r *recording) bool { return r.Ended() })
	if i < 0 {
		i = len(d.recordings)
		d.recordings = append(d.recordings, &recording{dev: d})
	}
	return d.recordings[i]
}

// Submit implements gpu.Recording.
func (r *recording) Submit() error {
	if err := r.Ready(); err != nil {
		r.Discard()
		return err
	}
	for _, h := range r.targets {
		h.mapping.unmap()
	}
	commands := r.commands
	r.commands = nil
	if err := r.dev.native.submit(commands); err != nil {
		r.Recording.Discard()
		return fmt.Errorf("encoder %s: not submitted: %w", r.Label(), err)
	}
	for _, h := range r.targets {
		if h.filledBy == 0 {
			r.dev.pending = append(r.dev.pending, h)
		}
		h.filledBy = r.Serial()
	}
	r.dev.sent++
	r.written, r.sent = r.dev.written, r.dev.sent
	r.Submitted()
	return nil
}

// Wait implements gpu.Recording. Wait requests mappings of the host buffers that the recording copied to, and
// waits for a mapping, which is complete only when the commands are done. If there is no such buffer, Wait
// waits for all submitted work, including later submits. It does not wait if an earlier wait has shown that
// this recording is done.
func (r *recording) Wait() error {
	if err := r.Waiting(); err != nil {
		return err
	}
	defer r.End()
	mine := func(h *hostBuffer) bool { return h.filledBy == r.Serial() }
	filled := slices.IndexFunc(r.targets, func(h *hostBuffer) bool { return mine(h) && !h.freed })
	switch {
	case filled >= 0:
		wait := func() error { return r.dev.native.waitFor(&r.targets[filled].mapping) }
		if err := r.dev.arrive(mine, wait); err != nil {
			return err
		}
		r.dev.waited(r.written, r.sent)
	case r.sent > r.dev.over:
		return r.dev.Wait()
	}
	r.Waited()
	return nil
}

// Discard implements gpu.Recording.
func (r *recording) Discard() {
	if r.commands != nil {
		r.dev.native.drop(r.commands)
		r.commands = nil
	}
	r.Recording.Discard()
}
