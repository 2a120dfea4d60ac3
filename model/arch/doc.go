// Package arch builds decoder graphs: the architectures, their configurations in GGUF and Hugging Face
// folders, the names of their tensors, and quantizing.
package arch
