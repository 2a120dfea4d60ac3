package analyze

import (
	"fmt"
	"strings"
)

// IDList joins ids with spaces: "0 2 3".
func IDList[ID ~int32](ids []ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	return strings.Join(words, " ")
}
