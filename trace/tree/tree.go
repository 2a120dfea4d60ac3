// Package tree has the rows of a tree in pre-order: which row is in which, and how a screen treats it.
// Numbers are computed for these rows, and tables show them.
package tree

// Row is a place in the tree.
type Row struct {
	// Key names what the row is about. It is the same in every step, so that a selection and the unfolded
	// rows survive a change of step.
	Key    string
	Parent int // index of the row that this one is in; -1: none
	Depth  int
	// Children reports that the row can be unfolded, Open that it is at first.
	Children, Open bool
	// Group is a heading: filters look only at its text, not at its numbers.
	Group bool
	// Apart is the name of the row outside of its heading ("attn.norm"); "" for a row that never leaves it.
	Apart string
	// Joint is a row that represents several: it is shown only where rows are out of their headings.
	Joint bool
	// Quiet is a row with little to say: the screen draws it as context.
	Quiet bool
}
