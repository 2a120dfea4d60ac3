package gguf_test

import (
	"os"
	"path/filepath"
	"testing"

	"gpuscope/model/checkpoint/gguf/gguftest"
)

// FuzzParse looks for input that panics, hangs or allocates too much memory.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add(gguftest.New().Bytes())
	f.Add(small().Bytes())
	if vocabulary, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "models", "tokenizers",
		"gpt-2.gguf")); err == nil {
		f.Add(vocabulary)
	}
	f.Fuzz(func(t *testing.T, data []byte) { readEverything(data) })
}
