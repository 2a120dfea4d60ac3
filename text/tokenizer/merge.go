package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"

	"gpuscope/internal/printable"
)

// pair is two adjacent tokens. The id of the left token is in the upper 32 bits.
type pair uint64

func pairOf(left, right int32) pair { return pair(uint64(uint32(left))<<32 | uint64(uint32(right))) }

// joint is the result of a merge: the id of the token that replaces two adjacent tokens. The merge with the
// lowest order is applied first.
type joint struct {
	order uint32
	id    int32
}

// readMerges builds the table that maps two adjacent tokens to their merge.
func (t *Tokenizer) readMerges() error {
	t.merges = make(map[pair]joint, len(t.config.Merges))
	for rank, m := range t.config.Merges {
		left, okLeft := t.ids[m[0]]
		right, okRight := t.ids[m[1]]
		joined, okJoined := t.ids[m[0]+m[1]]
		if !okLeft || !okRight || !okJoined {
			return fmt.Errorf("merge %d joins %q and %q, but one of these tokens or the joined token is not in the vocabulary",
				rank, printable.Short(m[0], 40), printable.Short(m[1], 40))
		}
		if _, double := t.merges[pairOf(left, right)]; !double {
			t.merges[pairOf(left, right)] = joint{uint32(rank), joined}
		}
	}
	return nil
}

// readScores builds the table of texts that a merge of adjacent tokens may produce. The merge with the
// highest score is applied first.
func (t *Tokenizer) readScores() {
	t.scored = make(map[string]joint, len(t.config.Tokens))
	for id, text := range t.config.Tokens {
		switch t.Kind(id) {
		case Control, Unknown, Byte, Undefined:
			continue
		}
		if text != "" {
			t.scored[text] = joint{fallingOrder(t.config.Scores[id]), int32(id)}
			t.longest = max(t.longest, len(text))
		}
	}
}

// fallingOrder maps scores to orders such that a higher score has a lower order. 0 and -0 have the same
// order.
func fallingOrder(score float32) uint32 {
	bits := math.Float32bits(score + 0)
	if bits>>31 == 0 {
		return math.MaxInt32 - bits
	}
	return bits
}

// encoder is the state of one Encode call. It stores a word as a linked list of symbols. Initially there is
// one symbol for each byte or character. A heap holds the possible merges. Encoding a word of n symbols takes
// O(n log n) time.
type encoder struct {
	t       *Tokenizer
	ids     []int
	total   int // number of bytes of the words so far
	symbols []symbolNode
	heap    []candidate
	lost    LostError
	missing string // the first character or byte without a token
	// unknown is true if the last id represents text without a token. While a word is split into symbols,
	// unknown refers to the last symbol instead.
	unknown bool
}

// symbolNode is a symbol that covers word[from:to]. prev and next are indices of the neighbors, or -1 at
// the ends.
type symbolNode struct {
	id         int32 // token id, or the constant gone or open
	from, to   int32
	prev, next int32
}

const (
	gone = -1 // the symbol was merged into its left neighbor
	open = -2 // the symbol is a character that is not a token by itself
)

// candidate is a merge that was possible when it was put into the heap. It is outdated if one of its two
// symbols now ends at another position.
type candidate struct {
	// order holds the priority of the merge in its upper half and the index of the left symbol in its lower
	// half. Among merges with the same priority, the leftmost is therefore applied first.
	order uint64
	id    int32
	to    int32 // position at which the right symbol ends
}

// The method word encodes one word and appends its tokens to the ids.
func (e *encoder) word(word string) error {
	t := e.t
	e.total += len(word)
	if err := checkLength(e.total); err != nil {
		return err
	}
	if t.config.WholeWords {
		if id, ok := t.words[word]; ok {
			e.ids, e.unknown = append(e.ids, int(id)), false
			return nil
		}
	}
	e.symbols, e.heap, e.unknown = e.symbols[:0], e.heap[:0], false
	if t.config.Characters {
		e.characters(word)
	} else {
		e.bytes(word)
	}
	if len(e.symbols) == 0 {
		return nil
	}
	e.symbols[len(e.symbols)-1].next = -1
	for i := range e.symbols {
		e.consider(word, int32(i))
	}
	for len(e.heap) > 0 {
		c := e.pop()
		place := int32(uint32(c.order))
		left := &e.symbols[place]
		if left.id == gone || left.next < 0 || e.symbols[left.next].to != c.to {
			continue
		}
		right := &e.symbols[left.next]
		left.id, left.to, left.next = c.id, right.to, right.next
		right.id = gone
		if left.next >= 0 {
			e.symbols[left.next].prev = place
		}
		e.consider(word, left.prev)
		e.consider(word, place)
	}
	e.unknown = false
	for i := int32(0); i >= 0; i = e.symbols[i].next {
		s := &e.symbols[i]
		if s.id == open {
			e.spell(word[s.from:s.to], func(id int32, _ int) { e.ids = append(e.ids, int(id)) })
			continue
		}
		e.ids, e.unknown = append(e.ids, int(s.id)), false
	}
	return nil
}

// The method bytes creates the initial symbols of a word, one for each byte.
func (e *encoder) bytes(word string) {
	for i := range len(word) {
		if id := e.t.bytes[word[i]]; id != None {
			e.add(id, i, i+1)
			e.unknown = false
		} else {
			e.spell(word[i:i+1], func(id int32, _ int) { e.add(id, i, i+1) })
		}
	}
}

// The method characters creates the initial symbols of a word, one for each character. A character that is
// not a token may still become part of a token in a vocabulary with scores. In a vocabulary with merges,
// spell replaces such a character at once.
func (e *encoder) characters(word string) {
	for i := 0; i < len(word); {
		_, n := utf8.DecodeRuneInString(word[i:])
		c := word[i : i+n]
		id, ok := e.t.ids[c]
		if e.t.scored != nil {
			var j joint
			j, ok = e.t.scored[c]
			if id = j.id; !ok {
				id, ok = open, true
			}
		}
		if ok {
			e.add(id, i, i+n)
			e.unknown = false
		} else {
			from := i
			e.spell(c, func(id int32, bytes int) {
				e.add(id, from, from+bytes)
				from += bytes
			})
		}
		i += n
	}
}

func (e *encoder) add(id int32, from, to int) {
	n := int32(len(e.symbols))
	e.symbols = append(e.symbols, symbolNode{id, int32(from), int32(to), n - 1, n + 1})
}

// spell encodes a character that is not a token. It calls `give` for the tokens of the character's bytes, or
// for the unknown token. If the vocabulary has neither, spell counts the character as lost.
func (e *encoder) spell(c string, give func(id int32, bytes int)) {
	t := e.t
	spelled := t.config.ByteFallback
	for i := range len(c) {
		spelled = spelled && t.bytes[c[i]] != None
	}
	switch {
	case spelled:
		for i := range len(c) {
			give(t.bytes[c[i]], 1)
		}
		e.unknown = false
	case t.config.Unknown == None:
		if t.config.Characters && t.config.Alphabet {
			c, _ = fromByteText(c)
		}
		if e.lost.Count == 0 {
			e.lost.Byte, e.missing = c[0], c
		}
		e.lost.Count += len(c)
	case !e.unknown || !t.config.FuseUnknown:
		give(int32(t.config.Unknown), len(c))
		e.unknown = true
	}
}

// consider pushes the merge of a symbol with its right neighbor onto the heap, if there is such a merge.
func (e *encoder) consider(word string, place int32) {
	if place < 0 {
		return
	}
	left := e.symbols[place]
	if left.next < 0 {
		return
	}
	right := e.symbols[left.next]
	var j joint
	var ok bool
	if t := e.t; t.scored == nil {
		j, ok = t.merges[pairOf(left.id, right.id)]
	} else if int(right.to-left.from) <= t.longest {
		j, ok = t.scored[word[left.from:right.to]]
	}
	if ok {
		e.push(candidate{order: uint64(j.order)<<32 | uint64(place), id: j.id, to: right.to})
	}
}

// push and pop keep the lowest order at the front of a binary heap. container/heap is not used because it
// would allocate memory for each candidate.
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
