// Package linediff compares two lists of lines.
package linediff

// Of compares two lists. It returns the lines that are in only one of them: with the prefix "- " if only in
// the first list, and with "+ " if only in the second.
func Of(before, after []string) []string {
	had, has := map[string]int{}, map[string]bool{}
	for i, l := range before {
		had[l] = i
	}
	for _, l := range after {
		has[l] = true
	}
	var lines []string
	at := 0
	lose := func(until string) {
		for ; at < len(before) && before[at] != until; at++ {
			if !has[before[at]] {
				lines = append(lines, "- "+before[at])
			}
		}
	}
	for _, l := range after {
		if i, ok := had[l]; ok && i >= at {
			lose(l)
			at++
		} else if !ok {
			for ; at < len(before) && !has[before[at]]; at++ {
				lines = append(lines, "- "+before[at])
			}
			lines = append(lines, "+ "+l)
		}
	}
	lose("")
	return lines
}
