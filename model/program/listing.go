package program

import (
	"cmp"
	"fmt"
	"strings"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/trace"
)

// Operators returns the operators of a method's delegate in the file, in the order in which ExecuTorch runs
// them. Their names are those in the engine's graph before fusion. Their kinds are the short names in the
// file: "linear_q4gsw". Kinds that compute a SymInt begin with "sym_". gpuscope need not support the
// operators.
func Operators(f *pte.File, method string) ([]trace.Op, error) {
	found, err := methodOf(f, method)
	if err != nil {
		return nil, err
	}
	m := Method{method: found}
	if err := m.readInstructions(); err != nil {
		return nil, fmt.Errorf("%s: method %s: %w", f.Name(), found.Name, err)
	}
	g, err := vulkan.Parse(found.Delegates[m.call.Target].Data, f.Lookup)
	if err != nil {
		return nil, fmt.Errorf("%s: method %s: %w", f.Name(), found.Name, err)
	}
	places := g.Places()
	ops := make([]trace.Op, len(g.Operators))
	for i := range g.Operators {
		op := &g.Operators[i]
		id := int(op.ID)
		ops[i] = trace.Op{
			ID: trace.OpID(i), Name: operatorName(op.ID, op.Name), Kind: fileKind(op.Name), SourceID: &id,
		}
		if s := &places[i]; s.Layer >= 0 {
			ops[i].Layer, ops[i].Block = &s.Layer, s.Block
		}
	}
	return ops, nil
}

// fileKind returns the short name of an operator of the file. Operators on SymInts have no namespace: "add".
func fileKind(name string) string {
	if !strings.Contains(name, ".") {
		return "sym_" + name
	}
	return cmp.Or(shortName(name), name)
}
