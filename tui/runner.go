package tui

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// runner owns every goroutine of the program, so that each has somebody who waits for it, none outlives the
// program unseen, and a panic in any of them ends the program with the terminal restored.
type runner struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	send   func(any) // hands a message to the event loop
	crash  func(*Panic)
}

func newRunner(ctx context.Context, send func(any), crash func(*Panic)) *runner {
	r := &runner{send: send, crash: crash}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// start runs f in a goroutine of its own.
func (r *runner) start(f func(context.Context)) {
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer r.guard()
		f(r.ctx)
	}()
}

// guard turns a panic into the end of the program.
func (r *runner) guard() {
	if v := recover(); v != nil {
		r.crash(&Panic{Value: v, Stack: debug.Stack()})
	}
}

// Panic is a bug that ended the program. The terminal has been restored when Run returns it.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string {
	return fmt.Sprintf("a bug ended the program: panic: %v; please report it with the lines above", p.Value)
}

// end runs a last function and waits for it and for all goroutines, but not longer than a time: a GPU that
// hangs must not keep a person from leaving.
func (r *runner) end(last func(), within time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.guard()
		last()
		r.wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(within):
	}
}
