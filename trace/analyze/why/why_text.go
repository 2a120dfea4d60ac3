package why

import "slices"

// Groups reports whether one of the chains that explain the grid has several operators.
func (w *Why) Groups() bool {
	return w.Grid != nil && slices.ContainsFunc(w.Grid.Causes, func(c Cause) bool { return c.Groups() })
}

// Groups reports whether the chain of the cause has several operators.
func (c *Cause) Groups() bool { return len(c.Links) > 1 }

// The current grid was set by a change. Around returns the last grid change before this change, and the first
// one after it. Both are indices into Trace.Steps, or -1 if there is no such change.
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

// LayersLink is a link of a shortened chain. If the chain passes through several layers in the same way, one
// LayersLink represents the same link of all these layers.
type LayersLink struct {
	Link
	Layers []int // the layers, if the link represents several; otherwise nil
}

// GroupLinks returns a chain in short form. If the chain passes through several layers in the same way, only
// the links of the first of these layers are kept.
func GroupLinks(links []Link) []LayersLink {
	type span struct {
		layer    int // -1 if the operators are in no layer
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
