package describe

import (
	"fmt"
	"strconv"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// port returns the description of an input or an output of a method. `id` is the index of the value.
func port(m *pte.Method, changes *vulkan.Changes, id int) Port {
	p := Port{Value: id}
	switch v := m.Values[id].(type) {
	case nil:
		p.Type, p.Literal = "None", "None"
	case *pte.Tensor:
		p.Type, p.Dims, p.Memory = v.Type.String(), dimsOf(v, changes.Of(id, v)), v.Memory.String()
		return p
	case int64:
		p.Type, p.Literal = "Int", strconv.FormatInt(v, 10)
	case float64:
		p.Type, p.Literal = "Double", floatText(v)
	case bool:
		p.Type, p.Literal = "Bool", strconv.FormatBool(v)
	case string:
		p.Type, p.Literal = "String", printable.Short(v, longest)
	case pte.IntList:
		p.Type, p.Literal = "IntList", listText(v, func(id int) string { return fmt.Sprint(m.Values[id]) })
	case []float64:
		p.Type, p.Literal = "DoubleList", listText(v, floatText)
	case []bool:
		p.Type, p.Literal = "BoolList", listText(v, strconv.FormatBool)
	case pte.TensorList:
		p.Type, p.Literal = "TensorList", listText(v, func(id int) string { return "%" + strconv.Itoa(id) })
	}
	if !m.Constant() {
		p.Literal = "" // the value is computed or provided by the caller
	}
	return p
}

func dimsOf(t *pte.Tensor, changes []vulkan.Change) []Dim {
	dims := make([]Dim, len(t.Sizes))
	for i, n := range t.Sizes {
		dims[i] = Dim{n, changes[i]}
	}
	return dims
}
