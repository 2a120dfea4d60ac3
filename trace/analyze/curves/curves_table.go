package curves

// Drift is how much of the slope no position explains, in %: that of rows which do the same work everywhere.
func (c *Curves) Drift() float64 {
	all := 0.0
	for i := range c.Rows {
		all += c.Rows[i].Drift
	}
	return all
}
