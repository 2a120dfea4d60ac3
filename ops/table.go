package ops

// Info is a row of Table.
type Info struct {
	Kind string // upstream's name: engine.Spec.Kind
	New  string // the constructor; its doc comment is the operator's
	// Routes are the ways of doing the work, where the live shape chooses between several.
	Routes []string
}

// Table lists every operator, by kind.
var Table = []Info{
	{Kind: "rms_norm", New: "RMSNorm"},
}
