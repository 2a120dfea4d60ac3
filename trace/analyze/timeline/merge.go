package timeline

import "gpuscope/trace/analyze"

// Merged is a part of a track that is drawn as one slice: one slice, or several that follow each other.
type Merged struct {
	From, To int64  // from the start of the first slice to the end of the last one
	BusyNS   int64  // sum of the measured durations
	Slices   int    // number of slices; 1 if nothing was merged
	Name     string // name of the slices with the largest total duration
	Lane     int
}

// Merge merges the drawn slices of one step, so that views of long runs need not draw every dispatch. At most
// `most` slices remain, but at least one for each lane that is in use. The time of a lane is divided into
// equal parts. The slices that begin in the same part become one. Slices of different lanes are never merged.
// The list must be sorted by From.
func Merge(list []Slice, most int) []Merged {
	lanes := 0
	for i := range list {
		lanes = max(lanes, list[i].Lane+1)
	}
	by := make([][]Slice, lanes)
	drawn := 0
	for _, s := range list {
		if s.Drawn() {
			by[s.Lane] = append(by[s.Lane], s)
			drawn++
		}
	}
	var out []Merged
	for _, lane := range by {
		if len(lane) == 0 {
			continue
		}
		// Each lane gets a part of the limit in proportion to its slices.
		n := max(1, most*len(lane)/max(1, drawn))
		out = append(out, mergeLane(lane, min(n, len(lane)))...)
	}
	return out
}

// mergeLane merges the slices of a lane to at most n.
func mergeLane(lane []Slice, n int) []Merged {
	if n == len(lane) {
		out := make([]Merged, n)
		for i, s := range lane {
			out[i] = Merged{From: s.From, To: s.To, BusyNS: s.NS, Slices: 1, Name: s.Name, Lane: s.Lane}
		}
		return out
	}
	// The instants are converted to float64, because a trace may contain any int64, and the difference of
	// two int64 can overflow.
	first, last := float64(lane[0].From), float64(lane[len(lane)-1].From)
	part := func(s Slice) int {
		share := (float64(s.From) - first) / (last - first + 1) // rounded to 1 if the lane takes over 2^53 ns
		return min(int(share*float64(n)), n-1)
	}
	var out []Merged
	for i := 0; i < len(lane); {
		k, m, of := part(lane[i]), Merged{From: lane[i].From, Lane: lane[i].Lane}, map[string]int64{}
		for ; i < len(lane) && part(lane[i]) == k; i++ {
			s := &lane[i]
			of[s.Name] = analyze.Add(of[s.Name], s.NS)
			if name := m.Name; name == "" || of[s.Name] > of[name] {
				m.Name = s.Name
			}
			m.To, m.BusyNS, m.Slices = max(m.To, s.To), analyze.Add(m.BusyNS, s.NS), m.Slices+1
		}
		out = append(out, m)
	}
	return out
}
