// Package fleet writes a trace as rows, for questions about many runs on many machines. Rows of many traces
// can be put together and queried with SQL. There are two tables: a row for each dispatch of a step, and a
// row for each step. Parquet writes both of them, and CSV writes the dispatches.
//
// The columns are a promise to the queries of others (docs/reference/fleet.md): a later minor version of
// Schema adds columns at the end of a table, and only a later major version removes or changes one.
package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/workclass"
)

// Schema is the name and the version of the columns. It is in the metadata of each Parquet file.
const Schema = "gpuscope.fleet/1.0"

// Tables is the export of both tables as Parquet.
var Tables = trace.Export{
	Name: "parquet", Doc: "folder with Parquet tables of dispatches and steps, for SQL over many runs",
	Suffix: ".parquet", WriteFolder: Parquet,
}

// Dispatches is the export of the table dispatches as CSV.
var Dispatches = trace.Export{
	Name: "csv", Doc: "table with a line for each dispatch of each step: times, grids, kernels",
	Suffix: ".csv", Write: CSV,
}

// run holds what all rows of a trace share.
type run struct {
	trace   *trace.Trace
	index   *analyze.Index
	id      string
	created time.Time // zero if the trace does not have a valid time
	formats []string  // weight format of each operator, or ""
	classes []workclass.Class
}

func newRun(t *trace.Trace) *run {
	r := &run{
		trace: t, index: analyze.NewIndex(t), formats: make([]string, len(t.Graph.Ops)),
		classes: workclass.Of(&t.Graph),
	}
	if created, err := time.Parse(time.RFC3339, t.Created); err == nil {
		r.created = created.UTC()
	}
	r.id = runID(t, r.created)
	for i := range t.Graph.Ops {
		for _, id := range t.Graph.Ops[i].Inputs {
			if m := t.Graph.Values[id].Matrix; m != nil {
				r.formats[i] = cmp.Or(r.formats[i], m.Format)
			}
		}
	}
	return r
}

// runID returns a name for a run that is different for each run and the same for each export of the run. It
// contains only letters, digits and a hyphen, so it is safe as a part of a file name. Runs that began in the
// same second on equal machines have different ids too, because the id depends on the measured times of
// opening the model.
func runID(t *trace.Trace, created time.Time) string {
	d := t.Device
	d.Ceilings = nil // a later record may replace them
	model := t.Model
	model.Quantized = nil
	text, err := json.Marshal([]any{t.Created, t.Producer, t.Engine, t.Command, t.Host, d, model, t.Opening})
	if err != nil {
		text = fmt.Append(nil, t.Created, t.Producer, t.Engine, t.Command, t.Host, d.Name, model.Name)
	}
	at := "undated"
	if !created.IsZero() {
		at = created.Format("20060102T150405Z")
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("r%s-%x", at, sum[:6])
}

// row holds the data from which the columns of one row are computed. In a row of the table steps, the fields
// of a dispatch are nil.
type row struct {
	*run
	step *trace.Step

	// Of a step.
	untimed analyze.Untimed

	// Of a dispatch.
	place    int // place of the dispatch in the step, in order of submission
	ran      *trace.StepDispatch
	plan     *trace.Plan
	dispatch *trace.Dispatch
	op       *trace.Op
	kernel   *trace.Kernel // nil if the trace does not describe the kernel
	cost     *trace.Cost   // cost of this dispatch and no other; nil if there is none
}

// steps yields the rows of the table steps. Each row is valid until the next one.
func (r *run) steps() iter.Seq[*row] {
	return func(yield func(*row) bool) {
		to := row{run: r}
		for i := range r.trace.Steps {
			to.step, to.untimed = &r.trace.Steps[i], r.index.Untimed(i)
			if !yield(&to) {
				return
			}
		}
	}
}

// dispatches yields the rows of the table dispatches. Each row is valid until the next one.
func (r *run) dispatches() iter.Seq[*row] {
	return func(yield func(*row) bool) {
		to := row{run: r}
		for i := range r.trace.Steps {
			s := &r.trace.Steps[i]
			costs := map[trace.DispatchID]*trace.Cost{}
			for k := range s.Costs {
				if c := &s.Costs[k]; len(c.Dispatches) == 1 {
					costs[c.Dispatches[0]] = c
				}
			}
			to.step = s
			for k := range s.Dispatches {
				to.place, to.ran = k, &s.Dispatches[k]
				to.plan = &r.trace.Plans[to.ran.Plan]
				to.dispatch = &r.trace.Graph.Dispatches[to.plan.Dispatch]
				to.op = &r.trace.Graph.Ops[to.dispatch.Op]
				to.kernel = r.index.Kernel(to.plan.Kernel)
				to.cost = costs[to.dispatch.ID]
				if !yield(&to) {
					return
				}
			}
		}
	}
}
