package analyze

import "slices"

// pageSize is the number of lists that are copied together when one of them changes.
const pageSize = 64

// histories holds an append-only list for each key. The versions of an index share these lists: a longer
// version copies only the pages in which it appends, and the lists themselves share their memory.
type histories[T any] struct{ pages []*[pageSize][]T }

func newHistories[T any](keys int) histories[T] {
	empty := new([pageSize][]T)
	h := histories[T]{make([]*[pageSize][]T, (keys+pageSize-1)/pageSize)}
	for i := range h.pages {
		h.pages[i] = empty
	}
	return h
}

// Of returns the list of a key.
func (h histories[T]) Of(key int) []T { return h.pages[key/pageSize][key%pageSize] }

// longer is a new version of histories while data is being appended to it.
type longer[T any] struct {
	histories[T]
	own    []bool // pages that were copied for this version
	shared bool   // another version uses the spare capacity of the lists
}

// extend starts a longer version of h. Several versions may be made from h, but only one of them may write
// to the spare capacity of its lists. The argument taken must be true for all other versions.
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
