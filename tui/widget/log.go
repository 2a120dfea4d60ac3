package widget

import (
	"strings"
	"sync"
	"time"
)

// Log keeps the last lines that anybody said: the session, the program, and what native libraries write to
// standard error while the screen is in use. It is an io.Writer of lines, and safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	lines   []LogLine
	version int
	rest    string
	Changed chan struct{}
}

// LogLine is a line of the log.
type LogLine struct {
	At    time.Time // zero: it was said when the trace was recorded
	Level string    // info, warn, error, or levelKey
	Text  string
}

// LevelKey is the level of what answers a key with which there is nothing to do.
const LevelKey = "key"

// logLines is how many lines are kept.
const logLines = 5000

// NewLog returns an empty log.
func NewLog() *Log { return &Log{Changed: make(chan struct{}, 1)} }

// Add appends a line.
func (l *Log) Add(level, text string) {
	l.append(LogLine{Now(), level, text})
}

// Recorded appends a line that a trace has. It does not say when that was.
func (l *Log) Recorded(text string) { l.append(LogLine{Level: "info", Text: text}) }

func (l *Log) append(line LogLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(line)
}

func (l *Log) add(line LogLine) {
	if len(l.lines) == logLines {
		l.lines = append(l.lines[:0:0], l.lines[logLines/10:]...)
	}
	l.lines = append(l.lines, line)
	l.version++
	select {
	case l.Changed <- struct{}{}:
	default:
	}
}

// Write appends each line of p as a warning.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest += string(p)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(p), nil
		}
		if l.rest = rest; strings.TrimSpace(line) != "" {
			l.add(LogLine{Now(), "warn", strings.TrimRight(line, "\r")})
		}
	}
}

// Snapshot is what there is now. The lines do not change.
func (l *Log) Snapshot() ([]LogLine, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[:len(l.lines):len(l.lines)], l.version
}
