// Package tree defines the rows of a tree. The rows are in pre-order. A row has the index of its parent, and
// says how a screen shows it. Package analyze computes numbers for the rows, and tables show both.
package tree

// Row is the place of a row in the tree, and says how a screen shows the row.
type Row struct {
	// Key identifies what the row is about. It is the same in each step. If the user goes to another step,
	// the same row is therefore selected, and the same rows are unfolded.
	Key    string
	Parent int // index of the row that contains this row; -1 if none
	Depth  int
	// Children is set if the row has rows inside it and can be unfolded. Open is set if it is unfolded at
	// first.
	Children, Open bool
	// Group is set if the row is a heading. Filters look at the text of a heading but not at its numbers.
	Group bool
	// Apart is the name of the row in a table that lists rows without their headings, such as "attn.norm". It
	// is "" if the row always stays below its heading (see table.Table.Apart).
	Apart string
	// Joint is set if the row represents several concurrent rows. A table shows such a row only if it lists
	// rows without their headings.
	Joint bool
	// Quiet is set if the row has little information. The screen dims it.
	Quiet bool
}
