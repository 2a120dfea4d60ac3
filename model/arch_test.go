//go:build !race

package model

import (
	"fmt"
	"path/filepath"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/model/session"
)

// archs is the folder of small models, one of each architecture, as folders of Hugging Face.
var archs = filepath.Join("..", "..", "shared", "models", "arch")

// Folders as transformers writes them.
func TestFoldersGiveTheGoldenLogits(t *testing.T) {
	dev := gputest.Open(t)
	for _, name := range []string{"llama3"} {
		var g golden
		readJSON(t, filepath.Join(archs, name, "golden.json"), &g)
		for i, c := range g.Cases {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				prompt := session.Command{Kind: session.Prompt, Tokens: c.PromptTokens, N: len(c.NewTokens)}
				c.hold(t, dev, Options{Path: filepath.Join(archs, name)}, prompt, 2*logitTolerance)
			})
		}
	}
}
