package tracetest

import (
	"sync"

	"gpuscope/trace"
)

// forecasts holds the courses (see trace.Course) of the operators of a one-layer model, by line and by the
// operator's name within a layer. Every layer of every model has the same courses.
var forecasts = sync.OnceValue(func() []map[string][]trace.Course {
	m := newModel(1)
	var all []map[string][]trace.Course
	for _, l := range forecastLines {
		courses := map[string][]trace.Course{}
		for i := range m.ops {
			courses[m.ops[i].Place()] = coursesOf(&m.ops[i], &l)
		}
		all = append(all, courses)
	}
	return all
})

var forecastLines = []trace.Line{
	{Along: trace.AlongPosition, At: 1, From: 0, To: context - 1},
	{Along: trace.AlongTokens, At: 0, From: 1, To: maxChunk},
}

// coursesOf returns the courses of an operator's slots along a line. A new stretch starts wherever a plan
// changes.
func coursesOf(o *operator, l *trace.Line) []trace.Course {
	courses := make([]trace.Course, len(o.slots))
	for at := l.From; at <= l.To; at++ {
		tokens, position := l.At, at
		if l.Along == trace.AlongTokens {
			tokens, position = at, l.At
		}
		now := make([]trace.Stretch, len(o.slots))
		for _, n := range o.launch(tokens, position) {
			s := &now[n.slot]
			s.Kernel, s.Route, s.Reason = n.kernel, n.route, n.reason
			for d, size := range n.grid {
				s.Workgroups[d] = trace.Rule{int64(size)}
			}
			s.NeededGroups, s.IdleLanes = trace.Rule{n.groups}, trace.Rule{n.idle}
			s.Bytes, s.FLOPs = trace.Rule{n.bytes}, trace.Rule{n.flops}
		}
		for k := range now {
			list := &courses[k].Stretches
			if n := len(*list); n > 0 {
				now[k].From = (*list)[n-1].From
			}
			if n := len(*list); n == 0 || now[k] != (*list)[n-1] {
				now[k].From = at
				*list = append(*list, now[k])
			}
		}
	}
	return courses
}

// Forecast returns the plans of a Run with the given number of layers, for every decode position and every
// prompt length. The trace that Run returns has no forecast, because a forecast is large.
func Forecast(layers int) *trace.Forecast {
	m, f := newModel(layers), &trace.Forecast{}
	for i, line := range forecastLines {
		places := map[string]int{}
		for k := range m.ops {
			o := &m.ops[k]
			name := o.Place()
			first, ok := places[name]
			if !ok {
				first = len(line.Courses)
				places[name] = first
				line.Courses = append(line.Courses, forecasts()[i][name]...)
			}
			for slot := range o.slots {
				line.Dispatches = append(line.Dispatches, first+slot)
			}
		}
		f.Lines = append(f.Lines, line)
	}
	return f
}
