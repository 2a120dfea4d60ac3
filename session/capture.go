package session

import "gpuscope/trace"

// CaptureTo selects the dispatch that a Capture writes, and the folder.
type CaptureTo struct {
	Dispatch trace.DispatchID `json:"dispatch"`
	// Phase is the phase of the step, for the description in the folder.
	Phase trace.Phase `json:"phase,omitempty"`
	// Dir is the path of the folder. A folder that an earlier Capture wrote is replaced.
	Dir      string `json:"dir"`
	MaxBytes int64  `json:"max_bytes"` // maximum total size of the arrays
}

// Captured describes the folder that a Capture wrote.
type Captured struct {
	Dir      string `json:"dir"`
	Dispatch string `json:"dispatch"` // name of the dispatch
	Kernel   string `json:"kernel"`
	Bindings int    `json:"bindings"` // number of storage bindings of the kernel
	Bytes    int64  `json:"bytes"`    // total size of the arrays
}
