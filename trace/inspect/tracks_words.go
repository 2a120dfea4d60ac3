package inspect

import (
	"gpuscope/trace/table"
)

// Of says which run of the step this was, where it was repeated: "first of 11 runs".
func (r *Tracks) Of() string {
	if r.Runs == 0 {
		return ""
	}
	return "first of " + table.Plural(r.Runs, "run")
}
