package kind

import (
	"crypto/sha256"
	"encoding/hex"

	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// EditedKernel returns the kernel for edited WGSL source. Its name consists of the original kernel's name, a
// plus sign, and the first 4 bytes of the SHA-256 hash of the edited source. Equal sources therefore have the
// same name in every run.
func EditedKernel(of, wgsl string) (*graph.Kernel, error) {
	k, err := shaders.Read(wgsl)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(wgsl))
	return FromSource(of+"+"+hex.EncodeToString(sum[:4]), k)
}
