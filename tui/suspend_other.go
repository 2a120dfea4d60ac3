//go:build !unix

package tui

import (
	"os"
	"sync/atomic"
)

// jobControl is nothing where no shell stops and continues its programs.
type jobControl struct {
	job    bool
	holder atomic.Int32
	ended  <-chan struct{}
}

func (*jobControl) control(*os.File, chan<- os.Signal) {}
func (*jobControl) hear(os.Signal) (any, bool)         { return nil, false }
func (*jobControl) stop()                              {}
func (*jobControl) awaitForeground()                   {}
