package widget

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Runner starts every goroutine of the program. At its end, the program waits for all these goroutines. A
// panic in any of them ends the program and restores the terminal.
type Runner struct {
	Ctx    context.Context
	Cancel context.CancelFunc
	Wg     sync.WaitGroup
	Send   func(any) // sends a message to the event loop
	Crash  func(*Panic)
}

func NewRunner(ctx context.Context, send func(any), crash func(*Panic)) *Runner {
	r := &Runner{Send: send, Crash: crash}
	r.Ctx, r.Cancel = context.WithCancel(ctx)
	return r
}

// Start runs f in a new goroutine.
func (r *Runner) Start(f func(context.Context)) {
	r.Wg.Add(1)
	go func() {
		defer r.Wg.Done()
		defer r.guard()
		f(r.Ctx)
	}()
}

// guard handles a panic: it ends the program and restores the terminal.
func (r *Runner) guard() {
	if v := recover(); v != nil {
		r.Crash(&Panic{Value: v, Stack: debug.Stack()})
	}
}

// Panic is a bug that ended the program. Run returns a Panic only after the terminal has been restored.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string {
	return fmt.Sprintf("internal error: panic: %v; please report this error together with the lines above",
		p.Value)
}

// End runs a last function and waits for all goroutines to end, but not longer than `within`, so that the
// program also ends while a GPU hangs.
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
