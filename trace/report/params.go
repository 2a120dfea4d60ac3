package report

import (
	"fmt"
	"strings"

	"gpuscope/trace/analyze"
)

// paramsText is "s=1, ctx 58→59": fields that changed with both values. With onlyChanged the others are left
// out.
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
