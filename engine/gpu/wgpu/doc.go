// Package wgpu implements the drivers of engine/gpu with WebGPU. The package uses Vulkan, Metal or DX12
// through wgpu-native 0.20, which the Go binding github.com/cogentcore/webgpu v0.23.0 links. No other
// package imports the binding. A build without cgo has no adapter and returns an error that says so.
//
// The section "The WebGPU binding" of docs/internals/hacking.md lists the pitfalls of the binding and the
// library, with the tests for each. Two design decisions follow from these pitfalls. First, every call is
// validated in Go (package engine/gpu/rules), because the library aborts the process where a browser would
// report an error. Second, an encoder is a list of commands, which one native call encodes and another
// submits. A step therefore needs no Go allocation, and its number of calls into C does not depend on the
// number of dispatches and timestamps.
package wgpu
