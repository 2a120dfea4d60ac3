// Package wgpu is the driver of engine/gpu over WebGPU: Vulkan, Metal or DX12 through wgpu-native 0.20, which
// the Go binding github.com/cogentcore/webgpu v0.23.0 links. No other package imports the binding. In a build
// without cgo there is no adapter and the error says so.
//
// The binding and the library have traps; docs/internals/hacking.md ("The WebGPU binding") lists them with
// the tests that pin them. Two decisions follow from them. Everything is checked in Go first
// (engine/gpu/rules), because the library aborts the process where a browser reports an error. And an encoder
// is a list of commands that one native call encodes and submits, so that a step costs no Go allocation and
// one crossing into C, however many dispatches and clock readings it has.
package wgpu
