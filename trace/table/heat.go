package table

// Heat says how large a part of a whole is, on a scale of four colors. All columns with heat use the same
// scale, so that the same color means the same part in every table.
type Heat int

// This is the scale of heat. A part is Warm from 5 %, Hot from 10 %, and Hottest from 25 % of the whole.
const (
	Cold Heat = iota
	Warm
	Hot
	Hottest
)

// HeatOf returns the heat of a part of a whole. The part is a fraction: 1 is the whole.
func HeatOf(part float64) Heat {
	switch {
	case part >= 0.25:
		return Hottest
	case part >= 0.1:
		return Hot
	case part >= 0.05:
		return Warm
	}
	return Cold
}

// HeatIn returns the heat of a cell. It is Cold in a column without heat, and for a number that is not
// reliable.
func (t *Table) HeatIn(row, col int) Heat {
	c := &t.Columns[col]
	if c.Part == nil {
		return Cold
	}
	if cell := c.Of(row); !cell.Has || cell.Mark != "" {
		return Cold
	}
	return HeatOf(c.Part(row))
}

// WithHeat returns a column with heat. `part` returns the part of a whole, from 0 to 1, that the number of a
// row stands for.
func (b Columns[R]) WithHeat(c Column, part func(*R) float64) Column {
	c.Part = func(row int) float64 { return part(b.at(row)) }
	return c
}
