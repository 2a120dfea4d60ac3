package tty

import (
	"os"
	"os/signal"
	"sync"
)

// Notify returns a channel of the listed signals, and a function that stops the delivery and may be called
// several times. A signal that arrives again before it was received is delivered once. Signals of one kind
// never displace a signal of another kind: many SIGTTIN, one for each terminal read of a background job, do
// not displace the SIGCONT.
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
