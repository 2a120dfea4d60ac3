package html

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// places collects the CSS classes that set a position or a length. The policy of the page forbids style
// attributes, so each place that is used gets a class. Places are rounded to 0.1 %.
type places map[string]string

// place returns the class that sets a CSS property to a share of the size of the parent.
func (p places) place(letter, property string, share float64) string {
	if math.IsNaN(share) {
		share = 0
	}
	n := int(math.Round(1000 * min(max(share, 0), 1)))
	class := fmt.Sprintf("%s%d", letter, n)
	p[class] = fmt.Sprintf(".%s{%s:%g%%}", class, property, float64(n)/10)
	return class
}

func (p places) width(share float64) string  { return p.place("w", "width", share) }
func (p places) left(share float64) string   { return p.place("l", "left", share) }
func (p places) bottom(share float64) string { return p.place("b", "bottom", share) }

// css returns the rules of all classes in order of their names.
func (p places) css() string {
	var rules []string
	for _, rule := range p {
		rules = append(rules, rule)
	}
	slices.Sort(rules)
	return strings.Join(rules, "\n")
}
