package program

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// Program is a method on a device. Mutable buffers keep their contents from run to run. Only one goroutine
// at a time may use a Program.
type Program struct {
	method *Method
	exec   *engine.Executor
	state  []graph.InputData // the inputs of the last run that operators update in place
}

// Load puts a method on a device: it uploads the weights and compiles the kernels. The file of the method
// must stay open until Load returns. The caller must release the device, after the Program.
func Load(dev gpu.Device, m *Method) (*Program, error) {
	exec, err := engine.Load(dev, m.Graph, m.options.Live, m.options.Progress)
	if err != nil {
		return nil, err
	}
	exec.SetCheck(m.options.Check)
	return &Program{method: m, exec: exec}, nil
}

// Release frees the memory of the program on the device.
func (p *Program) Release() { p.exec.Release() }

// Executor returns the executor of the program, which has the times and the results of the last run.
func (p *Program) Executor() *engine.Executor { return p.exec }

// Run runs the method once, with the shapes that the inputs have. The inputs must be in the order of the
// method's inputs and have their types. If Run returns an error that wraps ErrInput or graph.ErrShape,
// nothing has run.
func (p *Program) Run(ctx context.Context, inputs []*npy.Array) ([]*npy.Array, error) {
	return p.RunTimed(ctx, inputs, engine.TimingStep)
}

// RunTimed does the same as Run, and measures GPU times at the given timing level.
func (p *Program) RunTimed(ctx context.Context, inputs []*npy.Array, timing engine.Timing) ([]*npy.Array,
	error,
) {
	host, err := p.method.hostValues(inputs)
	if err != nil {
		return nil, err
	}
	in, state, err := p.stepInput(host)
	if err != nil {
		return nil, err
	}
	p.state = state
	if err := p.Rewind(); err != nil {
		return nil, err
	}
	if err := p.exec.Step(ctx, in, timing); err != nil {
		return nil, err
	}
	return p.outputs(host)
}

// Rewind restores the inputs that operators update in place to their contents before the last run.
func (p *Program) Rewind() error {
	for _, s := range p.state {
		if err := p.exec.WriteValue(s.Value, s.Data); err != nil {
			return err
		}
	}
	return nil
}

// Accumulating returns the buffers that would get other contents if a run were repeated: all mutable buffers
// except caches of keys and values. A repeated run writes the same values to the cache rows of its position.
func (m *Method) Accumulating() []graph.ValueID {
	caches := cachesOf(m.source)
	var list []graph.ValueID
	for _, id := range m.source.Mutable() {
		t, ok := m.source.Values[id].(*vulkan.Tensor)
		if v := m.Value(id); ok && t.Constant >= 0 && v != graph.None && !caches[id] {
			list = append(list, v)
		}
	}
	return list
}

// Check returns an error that wraps ErrInput if the inputs do not fit the method.
func (m *Method) Check(inputs []*npy.Array) error {
	_, err := m.hostValues(inputs)
	return err
}

// hostValues checks the inputs of a run. It returns them in a map whose keys are the ids of the method's
// values.
func (m *Method) hostValues(inputs []*npy.Array) (map[int]*npy.Array, error) {
	of := m.method
	if len(inputs) != len(of.Inputs) {
		return nil, fmt.Errorf("%w: the number of arrays is %d, want %d (the number of inputs of method %s)",
			ErrInput, len(inputs), len(of.Inputs), of.Name)
	}
	host := map[int]*npy.Array{}
	for i, id := range of.Inputs {
		t, ok := of.Values[id].(*pte.Tensor)
		if !ok {
			return nil, inputError(i, "method %s does not take a tensor as this input; gpuscope supports only tensors as inputs", of.Name)
		}
		a := inputs[i]
		want, ok := elements[t.Type]
		switch {
		case !ok:
			return nil, inputError(i, "%w", &TypeError{t.Type})
		case a.Type != want.numpy:
			return nil, inputError(i, "the array has type %s, want %s", a.Type.NumPy(), want.numpy.NumPy())
		case m.argument(id, t).differs(a.Dims) != "":
			return nil, inputError(i, "the array has shape %v, want %s: %s: %w", a.Dims,
				m.argument(id, t), m.argument(id, t).differs(a.Dims), graph.ErrShape)
		case len(a.Data) != graph.Numel(a.Dims)*a.Type.Size():
			return nil, inputError(i, "the array has %d bytes, but shape %v of %s needs %d", len(a.Data),
				a.Dims,
				a.Type, graph.Numel(a.Dims)*a.Type.Size())
		}
		host[id] = a
	}
	return host, nil
}

// stepInput returns the inputs of the engine's step, and the contents of the inputs that operators update in
// place.
func (p *Program) stepInput(host map[int]*npy.Array) (in *graph.StepInput, state []graph.InputData,
	err error,
) {
	m := p.method
	in = &graph.StepInput{Read: slices.Clone(m.Graph.Outputs())}
	for i, id := range m.source.Inputs {
		outer := m.call.Args[i]
		t := m.method.Values[outer].(*pte.Tensor) // Build has checked that it is a tensor
		v := m.values[id].tensor
		info := m.Graph.Value(v)
		data := graph.InputData{Value: v, Dims: t.Sizes}
		var bytes []byte
		if a := host[outer]; a != nil {
			data.Dims, bytes = a.Dims, a.Data
		} else if bytes, err = t.Data.Bytes(); err != nil {
			return nil, nil, err
		}
		at := slices.Index(m.method.Inputs, outer)
		if data.Data, err = toDevice(t.Type, bytes); err != nil {
			return nil, nil, inputError(at, "%w", err)
		}
		if n := info.DType.Bytes(graph.Numel(data.Dims)); int64(len(data.Data)) != n {
			return nil, nil, fmt.Errorf("constant %d of the method has %d bytes on the device, want %d",
				outer,
				len(data.Data), n)
		}
		if info.DType == graph.I32 {
			for k := 0; k < len(data.Data); k += 4 {
				data.Host = append(data.Host, int64(int32(binary.LittleEndian.Uint32(data.Data[k:]))))
			}
			if limit, ok := m.indices[v]; ok {
				for k, n := range data.Host {
					if n < 0 || n >= int64(limit) {
						return nil, nil, inputError(at, "element %d has the value %d, want an index from 0 to %d", k,
							n, limit-1)
					}
				}
			}
			for _, r := range m.sizes[v] {
				if len(r.at) != len(data.Dims) {
					continue
				}
				k := 0
				for axis, i := range r.at {
					if i < 0 {
						i += data.Dims[axis]
					}
					k = k*data.Dims[axis] + i
				}
				if k >= 0 && k < len(data.Host) && (data.Host[k] < r.lo || data.Host[k] > r.hi) {
					return nil, nil, inputError(at, "element %d has the value %d, want %d to %d", k,
						data.Host[k], r.lo, r.hi)
				}
			}
		}
		if info.Role == graph.State {
			if !slices.Equal(data.Dims, info.MaxDims) {
				return nil, nil, inputError(at, "the shape is %v, want %v", data.Dims, info.MaxDims)
			}
			state = append(state, data)
			continue
		}
		in.Inputs = append(in.Inputs, data)
	}
	return in, state, nil
}

// outputs reads the outputs of the delegate, performs the method's copies on the host (see hostCopy), and
// returns the outputs of the method.
func (p *Program) outputs(host map[int]*npy.Array) ([]*npy.Array, error) {
	m := p.method
	_, results, err := m.source.Split(m.call.Args)
	if err != nil {
		return nil, err
	}
	for i, outer := range results {
		t := m.method.Values[outer].(*pte.Tensor) // Build has checked its type
		e := elements[t.Type]
		v := m.Graph.Outputs()[i]
		words := make([]byte, p.exec.LiveSize(v))
		if _, err := p.exec.Output(v, words); err != nil {
			return nil, err
		}
		a := &npy.Array{Type: e.numpy, Dims: p.exec.LiveDims(v)}
		if a.Data, err = fromDevice(t.Type, words); err != nil {
			return nil, err
		}
		host[outer] = a
	}
	for _, c := range m.copies {
		a, ok := host[c.from]
		if !ok {
			return nil, fmt.Errorf("a host instruction copies value %d of the method, but this value was not computed",
				c.from)
		}
		host[c.to] = a
	}
	var outputs []*npy.Array
	for i, id := range m.method.Outputs {
		a, ok := host[id]
		if !ok {
			return nil, fmt.Errorf("output %d of method %s was not computed", i, m.method.Name)
		}
		outputs = append(outputs, a)
	}
	return outputs, nil
}
