package report

import (
	"fmt"
	"strings"

	"gpuscope/trace/analyze"
)

// paramsText formats params: "s=1, ctx 58→59". A changed field shows both values. With `onlyChanged` it omits
// the other fields.
func paramsText(list []analyze.ParamValue, onlyChanged bool) string {
	var parts []string
	for _, p := range list {
		switch {
		case p.Changed:
			parts = append(parts, fmt.Sprintf("%s %s→%s", p.Name, p.Was, p.Value))
		case !onlyChanged:
			parts = append(parts, p.Name+"="+p.Value)
		}
	}
	return strings.Join(parts, ", ")
}
