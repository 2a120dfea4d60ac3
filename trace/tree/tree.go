// Package tree defines the rows of a tree in pre-order: the parent of each row, and how a screen displays the
// row. Package analyze computes numbers for these rows, and tables show the rows with their numbers.
package tree

// Row is a position in the tree.
type Row struct {
	// Key identifies the subject of the row. It is the same in every step, so that the selected row and the
	// unfolded rows stay the same when the step changes.
	Key    string
	Parent int // index of the enclosing row, or -1
	Depth  int
	// Children reports whether the row can be unfolded. Open reports whether it is initially unfolded.
	Children, Open bool
	// Group reports whether the row is a heading. Filters match only the text of a heading, not its
	// numbers.
	Group bool
	// Apart is the name of the row in a table that lists rows outside of their headings: "attn.norm". It
	// is "" if the row always stays under its heading (see table.Table.Apart).
	Apart string
	// Joint reports whether the row represents several rows. Such a row is shown only in a table that
	// lists rows outside of their headings.
	Joint bool
	// Quiet reports whether the row has little information, so that the screen dims it.
	Quiet bool
}
