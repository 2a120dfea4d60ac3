package kind

import (
	"slices"

	"gpuscope/ops/weight"
)

// EachFormat returns a list of kinds that differ only in the weight format. Its argument is the kind for f32
// weights.
func EachFormat(of Kind) []Kind {
	var list []Kind
	for i := range weight.Formats {
		f := &weight.Formats[i]
		k := of
		k.Name, k.Args = f.KindName(of.Name), slices.Clone(of.Args)
		for j := range k.Args {
			if t := &k.Args[j].Type; t.Form == MatrixArg {
				t.Format = f.Name
			}
		}
		if k.Name != of.Name {
			k.Constructors, k.Doc = nil, of.Name+" with weights in the format "+f.Name+". "+f.Doc
		}
		if !slices.ContainsFunc(list, func(has Kind) bool { return has.Name == k.Name }) {
			list = append(list, k)
		}
	}
	return list
}
