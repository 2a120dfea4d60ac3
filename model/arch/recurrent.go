package arch

import (
	"fmt"

	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/ops/kind"
	"gpuscope/ops/recurrent"
)

// slotBytes limits the memory of all slots of recurrent State together, in bytes. Each slot keeps the state
// of one position. A session can return to this position without processing the tokens before it again. The
// number of slots is always between fewestSlots and mostSlots, even if slotBytes is exceeded.
const (
	slotBytes   = 512 << 20
	fewestSlots = 3
	mostSlots   = 16
)

// addSlots adds the SymInts that select the slots of the recurrent State. It does nothing if all layers have
// attention.
func (m *Decoder) addSlots() {
	if m.Recurrent == nil {
		return
	}
	var bytes int64
	for _, recurrent := range m.Recurrent {
		if recurrent {
			bytes += 4 * m.Arch.stateSize(&m.Config)
		}
	}
	n := int(min(max(slotBytes/max(bytes, 1), fewestSlots), mostSlots))
	m.recurrentState = &network.Recurrent{
		From: m.SymInt("state_from", 0, int64(n-1), 0), To: m.SymInt("state_to", 0, int64(n-1), 1), Slots: n,
		Bytes: bytes,
	}
}

// slots returns the arguments of a recurrent operator that select the slots to read and to write.
func (m *Decoder) slots() recurrent.Slots {
	s := m.recurrentState
	return recurrent.Slots{Position: kind.Sym(m.pos), From: kind.Sym(s.From), To: kind.Sym(s.To)}
}

// state adds the recurrent State of a layer to the graph: f32 [slots, dims...].
func (m *Decoder) state(layer int, name string, dims ...int) graph.ValueID {
	s := m.recurrentState
	v := m.State(fmt.Sprintf("layers.%d.%s", layer, name), graph.F32, append([]int{s.Slots}, dims...))
	s.State = append(s.State, v)
	return v
}

// recurrentLayers returns, for each layer, whether the layer is recurrent. If the file does not list the
// types of layers, they follow from the number of the layer, counted from 1. Layers whose number is a
// multiple of `each` have attention, and all other layers are recurrent.
func (r *configReader) recurrentLayers(each int) []bool {
	key, list := r.form.Keys.kinds, make([]bool, r.layers)
	if !r.has(key) {
		for i := range list {
			list[i] = each > 0 && (i+1)%each != 0
		}
		return list
	}
	kinds, err := r.f.Strings(r.prefix + key)
	if r.fail(err); err != nil || !r.eachLayer(key, len(kinds)) {
		return list
	}
	for i, kind := range kinds {
		list[i] = kind == r.form.recurrentKind
	}
	return list
}
