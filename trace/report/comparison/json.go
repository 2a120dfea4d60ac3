package comparison

import (
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/diff/expr"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/report"
)

// Schema is the name and the version of the JSON output. docs/guide/diff.md lists its fields. A field is
// added in a minor version, and only a major version changes or removes one.
const Schema = "gpuscope.diff/2.0"

// JSON is the JSON output of a comparison.
type JSON struct {
	Schema   string   `json:"schema"`
	A        SideJSON `json:"a"`
	B        SideJSON `json:"b"`
	Joined   string   `json:"joined"` // id, operator or order
	Headline string   `json:"headline"`
	// Sentences holds the lines above the table.
	Sentences   []string `json:"sentences"`
	Significant bool     `json:"significant"`
	// Clock is the factor by which times of B are longer because of the GPU clock.
	Clock      *float64        `json:"clock,omitempty"`
	Totals     []TotalJSON     `json:"totals"`
	Isolated   TimesJSON       `json:"isolated"`
	Groups     []GroupJSON     `json:"groups"`
	Rows       []RowJSON       `json:"rows"`
	Conditions []ConditionJSON `json:"conditions,omitempty"`
}

// SideJSON describes a side.
type SideJSON struct {
	Name  string `json:"name"`
	Steps string `json:"steps"` // selection, such as decode
	N     int    `json:"n"`     // number of compared steps
	// Of is the number of steps of the selection, if some of them were left out. Which describes the compared
	// steps: "77 of 199 decode steps: same routes as s199".
	Of      int    `json:"of,omitempty"`
	Which   string `json:"which"`
	Model   string `json:"model"`
	Device  string `json:"device"`
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Created string `json:"created,omitempty"`
}

// TimesJSON holds two times in ns. What was not measured is absent.
type TimesJSON struct {
	A           *float64 `json:"a_ns,omitempty"`
	AN          int      `json:"a_n,omitempty"`
	AError      *float64 `json:"a_error_ns,omitempty"`
	B           *float64 `json:"b_ns,omitempty"`
	BN          int      `json:"b_n,omitempty"`
	BError      *float64 `json:"b_error_ns,omitempty"`
	Delta       *float64 `json:"delta_ns,omitempty"`
	Relative    *float64 `json:"relative,omitempty"` // delta_ns / a_ns
	Noise       *float64 `json:"noise_ns,omitempty"` // largest difference that is not significant
	Significant bool     `json:"significant"`
}

// TotalJSON is a time of whole steps.
type TotalJSON struct {
	Scope   string       `json:"scope"`   // step for the selected steps, or a phase
	Measure diff.Measure `json:"measure"` // wall or gpu
	TimesJSON
	ATokensPerS float64 `json:"a_tokens_per_s,omitempty"`
	BTokensPerS float64 `json:"b_tokens_per_s,omitempty"`
	Repeats     bool    `json:"repeats,omitempty"` // the times are those of untimed repeats of one step
	Why         string  `json:"why,omitempty"`     // why the times were not compared
}

// GroupJSON is a group of dispatches.
type GroupJSON struct {
	By     diff.By     `json:"by"`
	Name   string      `json:"name"`
	Status diff.Status `json:"status"`
	A      int         `json:"a_dispatches"`
	B      int         `json:"b_dispatches"`
	TimesJSON
}

// RowJSON is a dispatch or, if dispatches are fused on one side, the dispatches that do the same work.
type RowJSON struct {
	Name    string       `json:"name"`
	Kind    string       `json:"kind"`
	Class   string       `json:"class"`
	Layer   string       `json:"layer,omitempty"`
	Status  diff.Status  `json:"status"`
	Changed []string     `json:"changed,omitempty"` // grid, route, source, params
	A       []LaunchJSON `json:"a,omitempty"`
	B       []LaunchJSON `json:"b,omitempty"`
	TimesJSON
}

// LaunchJSON is a dispatch on one side.
type LaunchJSON struct {
	ID     trace.DispatchID `json:"id"`
	Name   string           `json:"name"`
	Kernel string           `json:"kernel"`
	Route  string           `json:"route,omitempty"`
	Grid   [3]int           `json:"grid"`
}

// ConditionJSON is the result of a condition.
type ConditionJSON struct {
	Condition string  `json:"condition"`
	Value     float64 `json:"value"` // in ns, as a fraction, or as a count
	Unit      string  `json:"unit"`
	Holds     bool    `json:"holds"`
	Failed    bool    `json:"failed"`
	// Why is the reason why it is unknown whether the change is significant; absent if it is known.
	Why string `json:"why,omitempty"`
}

var joinedJSON = map[join.How]string{join.ByID: "id", join.ByOperator: "operator", join.ByOrder: "order"}

// JSONOf returns the JSON output of a comparison. It has every row and every group.
func JSONOf(d *diff.Diff, conditions []expr.Result) *JSON {
	j := &JSON{
		Schema: Schema, A: sideJSON(&d.Base), B: sideJSON(&d.Now), Joined: joinedJSON[d.Joined],
		Headline: Headline(d), Sentences: Sentences(d), Significant: d.Significant(),
		Isolated: timesJSON(&d.Isolated),
		Totals:   []TotalJSON{}, Groups: []GroupJSON{}, Rows: []RowJSON{},
	}
	if f := d.Noise.ClockFactor(); f != 1 {
		j.Clock = &f
	}
	for i := range d.Totals {
		t := &d.Totals[i]
		of := TotalJSON{Scope: t.Scope, Measure: t.Measure, TimesJSON: timesJSON(&t.Times), Why: t.Why}
		of.Repeats = t.Repeats
		of.ATokensPerS, of.BTokensPerS, _ = t.TokensPerS()
		j.Totals = append(j.Totals, of)
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		j.Groups = append(j.Groups, GroupJSON{g.By, g.Name, g.Status, g.Base, g.Now, timesJSON(&g.Times)})
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		of := RowJSON{
			Name: r.Name, Kind: r.Kind, Class: string(r.Class), Layer: r.Layer, Status: r.Status,
			TimesJSON: timesJSON(&r.Times),
		}
		for _, c := range []struct {
			on   bool
			what string
		}{
			{r.Plan.Grid, "grid"},
			{r.Plan.Route, "route"},
			{r.Plan.Text, "source"},
			{r.Plan.Params, "params"},
		} {
			if c.on {
				of.Changed = append(of.Changed, c.what)
			}
		}
		for _, l := range r.Base {
			of.A = append(of.A, launchJSON(l))
		}
		for _, l := range r.Now {
			of.B = append(of.B, launchJSON(l))
		}
		j.Rows = append(j.Rows, of)
	}
	for i := range conditions {
		r := &conditions[i]
		j.Conditions = append(j.Conditions, ConditionJSON{
			r.Condition.Text, r.Value, string(r.Condition.Unit), r.Holds, r.Failed(),
			r.NotJudged,
		})
	}
	return j
}

func sideJSON(s *diff.Side) SideJSON {
	t := s.Index.Trace
	engine := t.Engine
	if engine == "" {
		engine = t.Producer.Name
	}
	n, of := len(s.Selection.Steps), s.Selection.All()
	if of == n {
		of = 0
	}
	return SideJSON{
		Name: s.Name, Steps: s.Selection.Called(), N: n, Of: of,
		Which: report.SelectionText(s.Selection),
		Model: t.Model.Name, Device: t.Device.Name, Engine: engine, Version: t.Producer.Version,
		Created: t.Created,
	}
}

func timesJSON(t *diff.Times) TimesJSON {
	j := TimesJSON{Significant: t.Significant}
	side := func(of *diff.Time) (ns *float64, n int, off *float64) {
		if !of.Measured {
			return nil, 0, nil
		}
		if of.HasError {
			off = &of.ErrorNS
		}
		return &of.NS, of.N, off
	}
	j.A, j.AN, j.AError = side(&t.Base)
	j.B, j.BN, j.BError = side(&t.Now)
	if t.Both() {
		j.Delta = &t.DeltaNS
	}
	if f, ok := t.Relative(); ok {
		j.Relative = &f
	}
	if t.Known {
		j.Noise = &t.NoiseNS
	}
	return j
}

func launchJSON(l *analyze.Launch) LaunchJSON {
	return LaunchJSON{l.ID, l.Name(), l.Plan.Kernel, l.Plan.Route, l.Plan.Workgroups}
}
