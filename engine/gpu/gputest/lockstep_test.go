package gputest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
)

// side is one of the two devices of the lockstep test, with the objects created on it.
type side struct {
	dev       gpu.Device
	p         gpu.Pipeline
	buffers   []gpu.Buffer
	groups    []gpu.BindGroup
	readbacks []gpu.Readback
	stamps    []gpu.Timestamps
	enc       gpu.Encoder
	recorded  []gpu.Recording // not ended yet
}

// at returns element i modulo the length of the list, or the zero value if the list is empty.
func at[T any](list []T, i int) (v T) {
	if len(list) > 0 {
		v = list[i%len(list)]
	}
	return v
}

// action is one call with its arguments drawn. It runs on both sides, and returns what a caller sees: bytes
// and an error.
type action func(s *side) ([]byte, error)

var actions = map[string]func(t *rapid.T) action{
	"buffer": func(t *rapid.T) action {
		size := rapid.SampledFrom([]uint64{64, 64, 256, 4096, 0, 6}).Draw(t, "size")
		usage := rapid.SampledFrom([]gpu.Usage{gpu.Storage, gpu.Storage, gpu.Uniform}).Draw(t, "usage")
		return func(s *side) ([]byte, error) {
			b, err := s.dev.NewBuffer(fmt.Sprintf("buffer %d", len(s.buffers)), size, usage)
			if err == nil {
				s.buffers = append(s.buffers, b)
			}
			return nil, err
		}
	},
	"group": func(t *rapid.T) action {
		i, offset := draw(t), rapid.SampledFrom([]uint64{0, 0, 4, 64, 256, 8192}).Draw(t, "offset")
		return func(s *side) ([]byte, error) {
			g, err := s.dev.NewBindGroup(fmt.Sprintf("group %d", len(s.groups)), s.p,
				[]gpu.Binding{{Buffer: at(s.buffers, i), Offset: offset}})
			if err == nil {
				s.groups = append(s.groups, g)
			}
			return nil, err
		}
	},
	"readback": func(t *rapid.T) action {
		size := rapid.SampledFrom([]uint64{16, 64, 256, 3}).Draw(t, "size")
		return func(s *side) ([]byte, error) {
			r, err := s.dev.NewReadback(fmt.Sprintf("readback %d", len(s.readbacks)), size)
			if err == nil {
				s.readbacks = append(s.readbacks, r)
			}
			return nil, err
		}
	},
	"timestamps": func(t *rapid.T) action {
		n := rapid.IntRange(0, 3).Draw(t, "n")
		return func(s *side) ([]byte, error) {
			ts, err := s.dev.NewTimestamps(n)
			if err == nil {
				s.stamps = append(s.stamps, ts)
			}
			return nil, err
		}
	},
	"release": func(t *rapid.T) action {
		i, what := draw(t), rapid.IntRange(0, 9).Draw(t, "what")
		return func(s *side) ([]byte, error) {
			switch {
			case what == 0 && len(s.buffers) > 0:
				at(s.buffers, i).Release()
			case what == 1 && len(s.groups) > 0:
				at(s.groups, i).Release()
			case what == 2 && len(s.readbacks) > 0:
				at(s.readbacks, i).Release()
			case what == 3 && len(s.stamps) > 0:
				at(s.stamps, i).Release()
			}
			return nil, nil
		}
	},
	"write": func(t *rapid.T) action {
		i, offset := draw(t), offset(t)
		data := rapid.SampledFrom([][]byte{{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10, 11, 12}, {1}, nil}).Draw(t,
			"data")
		return func(s *side) ([]byte, error) { return nil, s.dev.Write(at(s.buffers, i), offset, data) }
	},
	"flush": func(*rapid.T) action { return func(s *side) ([]byte, error) { return nil, s.dev.Flush() } },
	"begin": func(*rapid.T) action {
		return func(s *side) ([]byte, error) {
			enc, err := s.dev.Begin("recording")
			if err == nil {
				s.enc = enc
			}
			return nil, err
		}
	},
	"pass": encode(func(t *rapid.T) func(s *side) error {
		return func(s *side) error { return s.enc.BeginPass("pass") }
	}),
	"end": encode(func(t *rapid.T) func(s *side) error {
		return func(s *side) error { return s.enc.EndPass() }
	}),
	"dispatch": encode(func(t *rapid.T) func(s *side) error {
		i, x := draw(t), rapid.Uint32Range(0, 10).Draw(t, "x")
		return func(s *side) error {
			s.enc.Dispatch(s.p, at(s.groups, i), x, 1, 1)
			return nil
		}
	}),
	"run": encode(func(t *rapid.T) func(s *side) error {
		i := draw(t)
		return func(s *side) error {
			if err := s.enc.BeginPass("pass"); err != nil {
				return err
			}
			s.enc.Dispatch(s.p, at(s.groups, i), 4, 1, 1)
			return s.enc.EndPass()
		}
	}),
	"copy": encode(func(t *rapid.T) func(s *side) error {
		i, j, from, to, size := draw(t), draw(t), offset(t), offset(t),
			rapid.SampledFrom([]uint64{4, 16, 64, 5}).Draw(t, "size")
		return func(s *side) error { return s.enc.Copy(at(s.buffers, i), from, at(s.buffers, j), to, size) }
	}),
	"copy out": encode(func(t *rapid.T) func(s *side) error {
		i, j, from, to, size := draw(t), draw(t), offset(t), offset(t),
			rapid.SampledFrom([]uint64{4, 16, 64}).Draw(t, "size")
		return func(s *side) error {
			return s.enc.CopyOut(at(s.buffers, i), from, at(s.readbacks, j), to,
				size)
		}
	}),
	"stamp": encode(func(t *rapid.T) func(s *side) error {
		i, slot := draw(t), rapid.IntRange(0, 3).Draw(t, "slot")
		return func(s *side) error { return s.enc.Timestamp(at(s.stamps, i), slot) }
	}),
	"resolve": encode(func(t *rapid.T) func(s *side) error {
		i, n := draw(t), rapid.IntRange(0, 3).Draw(t, "n")
		return func(s *side) error { return s.enc.Resolve(at(s.stamps, i), n) }
	}),
	"submit": encode(func(t *rapid.T) func(s *side) error {
		return func(s *side) error { return s.enc.Submit() }
	}),
	"finish": encode(func(t *rapid.T) func(s *side) error {
		return func(s *side) error {
			r, err := s.enc.Finish()
			if err == nil {
				s.recorded = append(s.recorded, r)
			}
			return err
		}
	}),
	"submit recording": func(t *rapid.T) action {
		i := draw(t)
		return func(s *side) ([]byte, error) {
			return s.withRecording(i, func(r gpu.Recording) (bool, error) {
				err := r.Submit()
				return err != nil, err
			})
		}
	},
	"wait for recording": func(t *rapid.T) action {
		i := draw(t)
		return func(s *side) ([]byte, error) {
			return s.withRecording(i, func(r gpu.Recording) (bool, error) {
				err := r.Wait()
				return err == nil, err
			})
		}
	},
	"discard recording": func(t *rapid.T) action {
		i := draw(t)
		return func(s *side) ([]byte, error) {
			return s.withRecording(i, func(r gpu.Recording) (bool, error) {
				r.Discard()
				return true, nil
			})
		}
	},
	"discard": encode(func(t *rapid.T) func(s *side) error {
		return func(s *side) error {
			s.enc.Discard()
			return nil
		}
	}),
	"wait": func(*rapid.T) action {
		return func(s *side) ([]byte, error) { return nil, s.dev.Wait() }
	},
	"read": func(t *rapid.T) action {
		i, offset, size := draw(t), offset(t), rapid.SampledFrom([]int{4, 16, 1}).Draw(t, "size")
		return func(s *side) ([]byte, error) {
			if len(s.readbacks) == 0 {
				return nil, nil
			}
			dst := make([]byte, size)
			return dst, at(s.readbacks, i).Read(dst, offset)
		}
	},
	"read ticks": func(t *rapid.T) action {
		i, n := draw(t), rapid.IntRange(0, 3).Draw(t, "n")
		return func(s *side) ([]byte, error) {
			if len(s.stamps) == 0 {
				return nil, nil
			}
			return nil, at(s.stamps, i).Read(make([]uint64, n))
		}
	},
}

// withRecording calls do with a recording. do reports whether it ended the recording.
func (s *side) withRecording(i int, do func(gpu.Recording) (ends bool, err error)) ([]byte, error) {
	if len(s.recorded) == 0 {
		return nil, nil
	}
	i %= len(s.recorded)
	ends, err := do(s.recorded[i])
	if ends {
		s.recorded = slices.Delete(s.recorded, i, i+1)
	}
	return nil, err
}

// encode makes an action from a call of the encoder. The action does nothing before the first Begin.
func encode(f func(t *rapid.T) func(s *side) error) func(t *rapid.T) action {
	return func(t *rapid.T) action {
		do := f(t)
		return func(s *side) ([]byte, error) {
			if s.enc == nil {
				return nil, nil
			}
			return nil, do(s)
		}
	}
}

func draw(t *rapid.T) int { return rapid.IntRange(0, 7).Draw(t, "object") }

func offset(t *rapid.T) uint64 {
	return rapid.SampledFrom([]uint64{0, 0, 0, 4, 16, 60, 2, 4096, 1 << 63}).Draw(t, "offset")
}

// For any calls in any order, the fake driver and WebGPU return the same errors and bytes, and no call makes
// the native library abort.
func TestBothDriversAnswerTheSame(outer *testing.T) {
	real := Open(outer)
	info := real.Info()
	kinds := []string{ // frequent ones appear more than once
		"buffer", "group", "readback", "timestamps", "release", "write", "begin", "pass", "end", "dispatch",
		"run", "copy", "copy out", "stamp", "resolve",
		"submit", "discard", "wait", "read", "read ticks", "write", "begin", "run", "run", "run", "copy out",
		"copy out", "submit", "submit", "submit", "wait", "read", "begin", "copy out", "finish", "finish",
		"submit recording", "submit recording", "wait for recording", "discard recording", "read",
	}
	rapid.Check(outer, func(t *rapid.T) {
		pretend := fake.New(fake.Options{
			Info:         gpu.AdapterInfo{Name: "twin", Limits: info.Limits},
			NoTimestamps: !info.Timestamps, NoLog: true,
		})
		pretend.OnDispatch = compute
		desc := gpu.PipelineDesc{
			Label: "increment", Source: incrementSource, Entry: "bump",
			Bindings: []gpu.Access{gpu.ReadWrite},
		}
		sides := [2]*side{{dev: pretend}, {dev: real}}
		for _, s := range sides {
			var err error
			if s.p, err = s.dev.NewPipeline(desc); err != nil {
				t.Fatal(err)
			}
			defer s.releaseAll()
			k := kit{outer, s.dev.(device)}
			s.buffers = []gpu.Buffer{k.buffer("a", 64), k.buffer("b", 256)}
			s.groups = []gpu.BindGroup{
				k.group(s.p, gpu.Binding{Buffer: s.buffers[0]}),
				k.group(s.p, gpu.Binding{Buffer: s.buffers[1]}),
			}
			s.readbacks = []gpu.Readback{k.readback("r", 64)}
		}
		for step := range rapid.IntRange(10, 100).Draw(t, "steps") {
			kind := rapid.SampledFrom(kinds).Draw(t, "call")
			do := actions[kind](t)
			wantBytes, wantErr := do(sides[0])
			gotBytes, gotErr := do(sides[1])
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !bytes.Equal(gotBytes, wantBytes) {
				t.Fatalf("step %d, %s:\nfake: % x, %v\nwgpu: % x, %v", step, kind, wantBytes, wantErr,
					gotBytes, gotErr)
			}
		}
	})
}

// releaseAll releases the objects of a sequence, so that the next sequence can use the same device.
func (s *side) releaseAll() {
	if s.enc != nil {
		s.enc.Discard()
	}
	for _, r := range s.recorded {
		r.Discard()
	}
	for _, b := range s.buffers {
		b.Release()
	}
	for _, g := range s.groups {
		g.Release()
	}
	for _, r := range s.readbacks {
		r.Release()
	}
	for _, ts := range s.stamps {
		ts.Release()
	}
	s.p.Release()
}
