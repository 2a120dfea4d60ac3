// Package bitset implements sets of small integers. Only New allocates memory.
package bitset

import "math/bits"

// Set is a set of integers in [0, n), where n is the argument of New.
type Set []uint64

func New(n int) Set          { return make(Set, (n+63)/64) }
func (s Set) Add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s Set) Remove(i int)   { s[i/64] &^= 1 << (i % 64) }
func (s Set) Has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

// Union adds all members of `other` to the set. Both sets must have the same size n.
func (s Set) Union(other Set) {
	for i, w := range other {
		s[i] |= w
	}
}

// Pop removes the smallest member that is at least `from`, and returns it. It returns -1 if there is none.
func (s Set) Pop(from int) int {
	for w := from / 64; w < len(s); w++ {
		word := s[w]
		if w == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if word != 0 {
			i := w*64 + bits.TrailingZeros64(word)
			s.Remove(i)
			return i
		}
	}
	return -1
}

// Empty reports whether the set has no members.
func (s Set) Empty() bool {
	for _, w := range s {
		if w != 0 {
			return false
		}
	}
	return true
}
