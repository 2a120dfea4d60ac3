// Package reference runs graphs in float64, operator by operator, by the operators' own plain references,
// and says how far a kernel's result may be from that (Tolerance).
package reference
