// Package recurrent has operators with a recurrent State: a State of fixed size that each step computes from
// the previous one. A KV cache grows with the text, and its earlier positions stay as they are. A recurrent
// State is overwritten instead, so the State tensors of this package have several slots. A step reads the
// slot state_from and writes the slot state_to. The two must differ, so that a step can run any number of
// times: it never reads what it writes. A caller can keep a slot to return to its position later. At position
// 0 the state is zero, whatever the slot holds.
package recurrent
