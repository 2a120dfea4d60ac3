package main

import (
	"slices"
	"strconv"
	"strings"
)

// speedRow is a row of the first table of a printed profile.
type speedRow struct {
	phase         string
	steps, tokens int
}

// speedRows returns the rows of the table "speed of each phase" in the output of a run.
func speedRows(out string) (rows []speedRow) {
	_, printed, _ := strings.Cut(out, "speed of each phase\n")
	printed, _, _ = strings.Cut(printed, "\n\n")
	var all speedRow // numbers that are the same in all rows
	var header []string
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "all rows: "):
			for part := range strings.SplitSeq(strings.TrimPrefix(line, "all rows: "), " · ") {
				name, number, _ := strings.Cut(strings.TrimSpace(part), " ")
				all.set(name, number)
			}
		case len(fields) == 0 || strings.HasPrefix(line, "prefill repeated"):
		case fields[0] == "phase":
			header = fields
		case slices.Contains([]string{"prefill", "decode", "execute"}, fields[0]):
			row := all
			row.phase = fields[0]
			for i, f := range fields {
				if i < len(header) {
					row.set(header[i], f)
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func (r *speedRow) set(column, text string) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
	case column == "steps" && r.steps == 0:
		r.steps = n
	case column == "tokens":
		r.tokens = n
	}
}
