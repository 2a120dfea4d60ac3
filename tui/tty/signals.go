package tty

import (
	"os"
	"os/signal"
	"sync"
)

// Notify returns a channel of the signals listed, and a function that ends it, which may be called again.
// A signal that arrives again before the receiver has taken it is delivered once. No number of signals of
// one kind displaces a signal of another: each read of the terminal by a job in the background raises
// SIGTTIN, and the SIGCONT that ends this must not be lost.
func Notify(signals ...os.Signal) (<-chan os.Signal, func()) {
	received, done := make(chan os.Signal), make(chan struct{})
	own := make([]chan os.Signal, len(signals))
	for i, sig := range signals {
		own[i] = make(chan os.Signal, 1)
		signal.Notify(own[i], sig)
		go func() {
			for {
				select {
				case <-done:
					return
				case s := <-own[i]:
					select {
					case <-done:
						return
					case received <- s:
					}
				}
			}
		}()
	}
	return received, sync.OnceFunc(func() {
		for _, c := range own {
			signal.Stop(c)
		}
		close(done)
	})
}
