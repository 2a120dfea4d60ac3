//go:build !unix

package tty

import (
	"os"
	"sync/atomic"
)

// JobControl does nothing on systems where no shell stops and continues programs.
type JobControl struct {
	Job    bool
	Holder atomic.Int32
	Ended  <-chan struct{}
}

func (*JobControl) Control(*os.File) []os.Signal { return nil }
func (*JobControl) Hear(os.Signal) (any, bool)   { return nil, false }
func (*JobControl) Stop()                        {}
func (*JobControl) AwaitForeground()             {}
