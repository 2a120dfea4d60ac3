package tty

import (
	"io"
	"os"
)

// BeginFrame and EndFrame enclose each frame. They tell the terminal to show the whole frame at once, which
// prevents partly drawn frames over ssh and in tmux. Bubble Tea writes each frame in one call.
const BeginFrame, EndFrame = "\x1b[?2026h", "\x1b[?2026l"

// Synchronized wraps a writer so that every write is enclosed in BeginFrame and EndFrame.
func Synchronized(out io.Writer) io.Writer {
	if f, ok := out.(*os.File); ok {
		return &syncFile{File: f}
	}
	return &syncWriter{out}
}

// syncFile embeds *os.File so that Bubble Tea still recognizes it as a terminal.
type syncFile struct{ *os.File }

func (f *syncFile) Write(p []byte) (int, error) { return writeFrame(f.File, p) }

// WriteString encloses a string in BeginFrame and EndFrame. Without this method, io.WriteString would call
// the method of the embedded file, which writes the string without BeginFrame and EndFrame.
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
