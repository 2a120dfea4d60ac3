package ops

import (
	"slices"

	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// eachFormat returns a list of kinds that differ only in the weight format. Its argument is the kind for f32
// weights.
func eachFormat(of kind.Kind) []kind.Kind {
	var list []kind.Kind
	for i := range weight.Formats {
		f := &weight.Formats[i]
		k := of
		k.Name, k.Args = f.KindName(of.Name), slices.Clone(of.Args)
		for j := range k.Args {
			if t := &k.Args[j].Type; t.Form == kind.MatrixArg {
				t.Format = f.Name
			}
		}
		if k.Name != of.Name {
			k.Constructors, k.Doc = nil, of.Name+" with weights in the format "+f.Name+". "+f.Doc
		}
		if !slices.ContainsFunc(list, func(has kind.Kind) bool { return has.Name == k.Name }) {
			list = append(list, k)
		}
	}
	return list
}
