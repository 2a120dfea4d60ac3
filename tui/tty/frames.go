package tty

import (
	"io"
	"os"
)

// Frames go out between marks that tell the terminal to show them at once: no tearing over ssh and in tmux.
// Bubble Tea writes each frame in one call.
const BeginFrame, EndFrame = "\x1b[?2026h", "\x1b[?2026l"

// Synchronized puts the marks around every write.
func Synchronized(out io.Writer) io.Writer {
	if f, ok := out.(*os.File); ok {
		return &syncFile{File: f}
	}
	return &syncWriter{out}
}

// syncFile is still the terminal that Bubble Tea looks for.
type syncFile struct{ *os.File }

func (f *syncFile) Write(p []byte) (int, error) { return writeFrame(f.File, p) }

// WriteString is what io.WriteString calls; the file's own would pass the marks by.
func (f *syncFile) WriteString(s string) (int, error) { return writeFrame(f.File, []byte(s)) }

type syncWriter struct{ w io.Writer }

func (f *syncWriter) Write(p []byte) (int, error) { return writeFrame(f.w, p) }

func writeFrame(w io.Writer, p []byte) (int, error) {
	framed := make([]byte, 0, len(p)+len(BeginFrame)+len(EndFrame))
	framed = append(framed, BeginFrame...)
	framed = append(framed, p...)
	framed = append(framed, EndFrame...)
	if _, err := w.Write(framed); err != nil {
		return 0, err
	}
	return len(p), nil
}
