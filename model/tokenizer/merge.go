package tokenizer

import (
	"fmt"

	"gpuscope/internal/printable"
)

// pair is two neighbouring tokens, left in the upper half.
type pair uint64

func pairOf(left, right int32) pair { return pair(uint64(uint32(left))<<32 | uint64(uint32(right))) }

func (t *Tokenizer) readMerges() error {
	t.ranks = make(map[pair]int32, len(t.config.Merges))
	t.joined = make([]int32, len(t.config.Merges))
	for rank, m := range t.config.Merges {
		left, okLeft := t.ids[m[0]]
		right, okRight := t.ids[m[1]]
		joined, okJoined := t.ids[m[0]+m[1]]
		if !okLeft || !okRight || !okJoined {
			return fmt.Errorf("merge %d joins %q and %q, and the vocabulary lacks one of them or what they give", rank,
				printable.Short(m[0], 40), printable.Short(m[1], 40))
		}
		t.joined[rank] = joined
		if _, double := t.ranks[pairOf(left, right)]; !double {
			t.ranks[pairOf(left, right)] = int32(rank)
		}
	}
	return nil
}

// encoder holds what one Encode needs. A word is a linked list of symbols, one for each byte at first, and a
// heap of the merges that are possible in it: of n bytes in O(n log n).
type encoder struct {
	t       *Tokenizer
	ids     []int
	symbols []symbolNode
	heap    []candidate
}

// symbolNode is a token in the making. Neighbours are indices, -1 at the ends.
type symbolNode struct {
	id         int32 // None once it was joined to its left neighbour
	prev, next int32
}

// candidate is a merge that was possible when it was put into the heap. It is out of date where the pair no
// longer stands at its place.
type candidate struct {
	// rank in the upper half, place of the left symbol in the lower: the leftmost of equal ranks comes first
	order uint64
	pair  pair
}

// word appends the tokens of one word. It gives the place of the first byte that the vocabulary has no token
// for, -1 where it has one for each.
func (e *encoder) word(word string) (unknown int) {
	t := e.t
	if t.words != nil {
		if id, ok := t.words[word]; ok {
			e.ids = append(e.ids, int(id))
			return -1
		}
	}
	e.symbols, e.heap = e.symbols[:0], e.heap[:0]
	for i := range len(word) {
		id := t.bytes[word[i]]
		if id == None {
			return i
		}
		e.symbols = append(e.symbols, symbolNode{id: id, prev: int32(i - 1), next: int32(i + 1)})
	}
	e.symbols[len(word)-1].next = -1
	for i := range e.symbols {
		e.consider(int32(i))
	}
	for len(e.heap) > 0 {
		c := e.pop()
		place := int32(uint32(c.order))
		left := &e.symbols[place]
		if left.id == None || left.next < 0 || pairOf(left.id, e.symbols[left.next].id) != c.pair {
			continue
		}
		right := &e.symbols[left.next]
		left.id, right.id = t.joined[c.order>>32], None
		left.next = right.next
		if left.next >= 0 {
			e.symbols[left.next].prev = place
		}
		e.consider(left.prev)
		e.consider(place)
	}
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		e.ids = append(e.ids, int(e.symbols[i].id))
	}
	return -1
}

// consider puts the merge of a symbol with its right neighbour into the heap, if there is one.
func (e *encoder) consider(place int32) {
	if place < 0 {
		return
	}
	left := e.symbols[place]
	if left.next < 0 {
		return
	}
	p := pairOf(left.id, e.symbols[left.next].id)
	if rank, ok := e.t.ranks[p]; ok {
		e.push(candidate{order: uint64(rank)<<32 | uint64(place), pair: p})
	}
}

// push and pop keep the lowest order at the front of a binary heap. (container/heap would allocate for each
// candidate.)
func (e *encoder) push(c candidate) {
	e.heap = append(e.heap, c)
	for i := len(e.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if e.heap[parent].order <= e.heap[i].order {
			return
		}
		e.heap[parent], e.heap[i] = e.heap[i], e.heap[parent]
		i = parent
	}
}

func (e *encoder) pop() candidate {
	top, last := e.heap[0], len(e.heap)-1
	e.heap[0] = e.heap[last]
	e.heap = e.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && e.heap[child+1].order < e.heap[child].order {
			child++
		}
		if e.heap[i].order <= e.heap[child].order {
			return top
		}
		e.heap[i], e.heap[child] = e.heap[child], e.heap[i]
		i = child
	}
}
