package fake

import (
	"slices"

	"gpuscope/engine/gpu/rules"
)

// recording implements gpu.Recording. Recordings that have ended are reused.
type recording struct {
	rules.Recording
	dev      *Device
	commands []command
}

// recording returns a recording that is not in use.
func (d *Device) recording() *recording {
	i := slices.IndexFunc(d.recordings, func(r *recording) bool { return r.Ended() })
	if i < 0 {
		i = len(d.recordings)
		d.recordings = append(d.recordings, &recording{dev: d})
	}
	return d.recordings[i]
}

// submit runs the commands immediately and makes the recording available for reuse. The caller must not wait
// for this recording.
func (r *recording) submit() error {
	err := r.Submit()
	r.End()
	return err
}

// Submit implements gpu.Recording. The commands run during this call.
func (r *recording) Submit() error {
	err := r.dev.call(Call{Kind: Submit, Label: r.Label()})
	if err == nil {
		err = r.Ready()
	}
	if err != nil {
		r.Recording.Discard()
		return err
	}
	for i := range r.commands {
		r.dev.run(&r.commands[i])
	}
	r.Submitted()
	return nil
}

// Wait implements gpu.Recording.
func (r *recording) Wait() error {
	err := r.dev.call(Call{Kind: Wait, Label: r.Label()})
	if err == nil {
		err = r.Waiting()
	}
	if err != nil {
		r.End()
		return err
	}
	r.Waited()
	return nil
}

// Discard implements gpu.Recording.
func (r *recording) Discard() {
	_ = r.dev.call(Call{Kind: Discard, Label: r.Label()}) // Discard cannot report this error
	r.Recording.Discard()
}
