// Package storage shows the use of device memory and which values share memory.
package storage
