package analyze

import "slices"

// pageSize is the number of lists in a page. If one list changes, all lists of its page are copied.
const pageSize = 64

// histories holds a list for each key. Lists can only become longer. Each version of an index has its own
// histories, but versions share memory: a longer version copies only the pages of lists to which it appends,
// and the elements of the lists are shared too.
type histories[T any] struct{ pages []*[pageSize][]T }

func newHistories[T any](keys int) histories[T] {
	empty := new([pageSize][]T)
	h := histories[T]{make([]*[pageSize][]T, (keys+pageSize-1)/pageSize)}
	for i := range h.pages {
		h.pages[i] = empty
	}
	return h
}

// Of returns the list that belongs to a key.
func (h histories[T]) Of(key int) []T { return h.pages[key/pageSize][key%pageSize] }

// longer is a new version of some histories. Elements are being appended to its lists.
type longer[T any] struct {
	histories[T]
	own    []bool // for each page, whether this version has its own copy
	shared bool   // another version uses the capacity beyond the ends of the lists
}

// extend starts a longer version of h. h can be extended more than once, but only one of the new versions may
// use the capacity beyond the ends of the lists. For all others, `taken` must be true.
func (h histories[T]) extend(taken bool) *longer[T] {
	return &longer[T]{histories[T]{slices.Clone(h.pages)}, make([]bool, len(h.pages)), taken}
}

func (l *longer[T]) append(key int, v T) {
	p := key / pageSize
	if !l.own[p] {
		page := *l.pages[p]
		if l.shared {
			for i := range page {
				page[i] = slices.Clip(page[i])
			}
		}
		l.pages[p], l.own[p] = &page, true
	}
	list := &l.pages[p][key%pageSize]
	*list = append(*list, v)
}
