package inspect

import (
	"fmt"
	"strings"
)

// idList is "0 2 3".
func idList[ID ~int32](ids []ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	return strings.Join(words, " ")
}
