package chromecheck

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// sequence is a reader of a text for each number up to n.
func sequence(n int, text string) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, "[")
		for i := 0; i < n && err == nil; i++ {
			_, err = io.WriteString(w, strings.ReplaceAll(text, "N", fmt.Sprint(i+1))+",\n")
		}
		w.CloseWithError(err)
	}()
	return r
}

// Whatever a file has many of, its check needs little more memory than the limit.
func TestMemoryOfManyEventsIsLimited(t *testing.T) {
	defer func(was int) { maxMemory = was }(maxMemory)
	maxMemory = 1 << 20
	for name, text := range map[string]string{
		"slices":     `{"ph":"X","cat":"c","name":"n","pid":1,"tid":1,"ts":1,"dur":1}`,
		"beginnings": `{"ph":"B","name":"n","pid":1,"tid":1,"ts":1}`,
		"threads":    `{"ph":"B","name":"n","pid":1,"tid":N,"ts":1}`,
		"arrows":     `{"ph":"s","cat":"c","name":"n","pid":1,"tid":1,"id":N,"ts":1}`,
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		in := sequence(60_000, text)
		c := &checker{
			report: func(Violation) {}, threads: map[thread]*track{}, in: &reader{in: in, left: maxEvent},
		}
		err := c.file()
		runtime.GC()
		runtime.ReadMemStats(&after)
		used := int(after.HeapAlloc) - int(before.HeapAlloc)
		if !errors.Is(err, ErrTooLarge) || used > 2*maxMemory {
			t.Errorf("%s: %v, with %d bytes in use", name, err, used)
		}
		runtime.KeepAlive(c)
	}
}
