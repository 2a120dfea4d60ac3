package inspect

// Takes says which scopes a table speaks of.
type Takes int

// The scopes that tables take.
const (
	OneStep  Takes = iota // exactly one
	AnySteps              // one, or several by their medians
	WholeRun              // the whole run, or the part of it that a scope names
	NoSteps               // none: it is of the graph or of the file
)

// String is what a list of tables says of it.
func (k Takes) String() string {
	return [...]string{"one step", "any steps", "the whole run, or any steps", "the graph or the file"}[k]
}
