// Package storage shows what takes memory, and which values share it.
package storage
