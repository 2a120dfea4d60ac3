package analyze

import "slices"

// pageSize is how many histories are copied where one of them changes.
const pageSize = 64

// histories are append-only lists by key, shared by the versions of an index: a longer version has the pages
// of the one before except for those in which something was appended, and the lists share their memory.
type histories[T any] struct{ pages []*[pageSize][]T }

func newHistories[T any](keys int) histories[T] {
	empty := new([pageSize][]T)
	h := histories[T]{make([]*[pageSize][]T, (keys+pageSize-1)/pageSize)}
	for i := range h.pages {
		h.pages[i] = empty
	}
	return h
}

// Of is the history of a key.
func (h histories[T]) Of(key int) []T { return h.pages[key/pageSize][key%pageSize] }

// longer is a version of histories while it is being made.
type longer[T any] struct {
	histories[T]
	own    []bool // pages that no other version has
	shared bool   // the lists' memory after their ends is another version's
}

// extend begins a version that is longer than h. Of the versions that are made of one, all but one must be
// told that the memory after the ends of its lists is taken.
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
