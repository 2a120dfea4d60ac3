package widget

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Runner owns every goroutine of the program, so that each has somebody who waits for it, none outlives the
// program unseen, and a panic in any of them ends the program with the terminal restored.
type Runner struct {
	Ctx    context.Context
	Cancel context.CancelFunc
	Wg     sync.WaitGroup
	Send   func(any) // hands a message to the event loop
	Crash  func(*Panic)
}

func NewRunner(ctx context.Context, send func(any), crash func(*Panic)) *Runner {
	r := &Runner{Send: send, Crash: crash}
	r.Ctx, r.Cancel = context.WithCancel(ctx)
	return r
}

// Start runs f in a goroutine of its own.
func (r *Runner) Start(f func(context.Context)) {
	r.Wg.Add(1)
	go func() {
		defer r.Wg.Done()
		defer r.guard()
		f(r.Ctx)
	}()
}

// guard turns a panic into the end of the program.
func (r *Runner) guard() {
	if v := recover(); v != nil {
		r.Crash(&Panic{Value: v, Stack: debug.Stack()})
	}
}

// Panic is a bug that ended the program. The terminal has been restored when Run returns it.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string {
	return fmt.Sprintf("internal error: panic: %v; please report it with the lines above", p.Value)
}

// End runs a last function and waits for it and for all goroutines, but not longer than a time: a GPU that
// hangs must not keep a person from leaving.
func (r *Runner) End(last func(), within time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.guard()
		last()
		r.Wg.Wait()
	}()
	select {
	case <-done:
	case <-time.After(within):
	}
}
