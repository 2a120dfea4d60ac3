// Package demo contains the embedded model. It has 11M parameters, was trained on public-domain text, and
// is licensed CC0-1.0.
package demo

import _ "embed"

// File holds the model in the GGUF format.
//
//go:embed demo.gguf
var File []byte

// Name is the display name of the embedded model.
const Name = "demo (embedded)"
