package report

import (
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/table"
)

// TrackRun says which run of the step this was, where it was repeated: "first of 11 runs".
func TrackRun(r *tracks.Tracks) string {
	if r.Runs == 0 {
		return ""
	}
	return "first of " + table.Plural(r.Runs, "run")
}
