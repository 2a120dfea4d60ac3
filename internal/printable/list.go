package printable

import (
	"fmt"
	"strconv"
	"strings"
)

// Dims formats a shape for use in a sentence: "[256, 512]".
func Dims[T any](dims []T) string { return "[" + strings.Join(words(dims), ", ") + "]" }

// Choice formats a list of alternatives for use in a sentence: "32, 64 or 128". It returns "none" for an
// empty list.
func Choice[T any](items []T) string {
	list := words(items)
	switch n := len(list); n {
	case 0:
		return "none"
	case 1:
		return list[0]
	default:
		return strings.Join(list[:n-1], ", ") + " or " + list[n-1]
	}
}

// Ranges formats rising numbers and joins consecutive numbers: "0–4, 6".
func Ranges(list []int) string {
	var out []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i == j {
			out = append(out, strconv.Itoa(list[i]))
		} else {
			out = append(out, fmt.Sprintf("%d–%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}

func words[T any](items []T) []string {
	list := make([]string, len(items))
	for i, item := range items {
		list[i] = fmt.Sprint(item)
	}
	return list
}
