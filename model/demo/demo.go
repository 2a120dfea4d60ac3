// Package demo is the embedded model: 11M parameters, trained on public-domain text, CC0-1.0.
package demo

import _ "embed"

// File is the model as a GGUF file.
//
//go:embed demo.gguf
var File []byte

// Name is the model's name for people.
const Name = "demo (embedded)"
