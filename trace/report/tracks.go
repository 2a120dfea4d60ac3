package report

import (
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/table"
)

// TrackRun describes which run of a repeated step was recorded: "first of 11 runs".
func TrackRun(r *tracks.Tracks) string {
	if r.Runs == 0 {
		return ""
	}
	return "first of " + table.Plural(r.Runs, "run")
}
