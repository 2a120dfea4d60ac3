package session

// SaveTo selects the file that a Save writes. Its suffix chooses the format: .npy is an array of NumPy with
// the live shape of the value, and .csv has one line for each row of the last dim.
type SaveTo struct {
	Path string `json:"path"` // must not exist
}

// Saved describes the file that a Save wrote.
type Saved struct {
	Path  string `json:"path"`
	Type  string `json:"type"`           // type of the elements, as NumPy names it
	Dims  []int  `json:"dims,omitempty"` // live shape of the value
	Bytes int64  `json:"bytes"`          // size of the file
}
