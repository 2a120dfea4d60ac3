package ops

import (
	"crypto/sha256"
	"encoding/hex"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
)

// EditedKernel is another text of a kernel, as the engine takes it. Its name is the kernel's with the
// beginning of the text's hash, so that the same text has the same name in every run.
func EditedKernel(of, wgsl string) (*graph.Kernel, error) {
	k, err := shaders.Read(wgsl)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(wgsl))
	return kind.FromSource(of+"+"+hex.EncodeToString(sum[:4]), k)
}
