package why

import (
	"slices"
)

// Groups reports whether a chain to what set the grid goes through several operators.
func (w *Why) Groups() bool {
	return w.Grid != nil && slices.ContainsFunc(w.Grid.Causes, func(c Cause) bool { return c.Groups() })
}

// Groups reports whether the way back to the input goes through several operators.
func (c *Cause) Groups() bool { return len(c.Links) > 1 }

// Around are the steps, indices into Trace.Steps, of the changes of this grid before and after the one that
// set it: -1 where the run has none.
func (w *Why) Around() (earlier, later int) {
	earlier, later = -1, -1
	for _, i := range w.Changes {
		switch {
		case w.Grid != nil && i < w.Grid.At:
			earlier = i
		case i > w.At && later < 0:
			later = i
		}
	}
	return earlier, later
}

// LayersLink is a link, or the same way through several layers.
type LayersLink struct {
	Link
	Layers []int // of all that the chain passes in the same way; nil where it is one
}

// GroupLinks leaves one of the layers that a chain passes in the same way.
func GroupLinks(links []Link) []LayersLink {
	type span struct {
		layer    int // -1: outside of the layers
		from, to int
		shape    string
	}
	var spans []span
	for i := range links {
		o := links[i].Op
		layer := -1
		if o.Layer != nil {
			layer = *o.Layer
		}
		if n := len(spans); n == 0 || spans[n-1].layer != layer {
			spans = append(spans, span{layer: layer, from: i})
		}
		s := &spans[len(spans)-1]
		s.to = i + 1
		s.shape += o.Place() + "\n"
	}
	var out []LayersLink
	for i := 0; i < len(spans); {
		j := i + 1
		layers := []int{spans[i].layer}
		for j < len(spans) && spans[i].layer >= 0 && spans[j].shape == spans[i].shape {
			layers = append(layers, spans[j].layer)
			j++
		}
		slices.Sort(layers)
		for k := spans[i].from; k < spans[i].to; k++ {
			f := LayersLink{Link: links[k]}
			if len(layers) > 1 {
				f.Layers = layers
			}
			out = append(out, f)
		}
		i = j
	}
	return out
}
