// Package arch builds decoder graphs. It contains the supported architectures, the readers of their
// configurations in GGUF files and Hugging Face folders, the names of their tensors, and the quantization
// of weights.
package arch
