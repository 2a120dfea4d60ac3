package widget

import (
	"strings"
	"sync"
	"time"
)

// Log keeps the latest messages of the session, of the program, and of native libraries, which write to
// standard error. Log is an io.Writer of lines and is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	lines   []LogLine
	version int
	rest    string
	Changed chan struct{}
}

type LogLine struct {
	At    time.Time // zero for a line from a recorded trace
	Level string    // info, warn, error or LevelKey
	Text  string
}

// LevelKey is the level of messages that explain why a key had no effect.
const LevelKey = "key"

// logLines is the maximum number of lines in the log.
const logLines = 5000

// NewLog returns an empty log.
func NewLog() *Log { return &Log{Changed: make(chan struct{}, 1)} }

func (l *Log) Add(level, text string) {
	l.append(LogLine{Now(), level, text})
}

// Recorded appends a line from a trace, which has no time.
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

// Snapshot returns the current lines, which the caller must not change, and their version number.
func (l *Log) Snapshot() ([]LogLine, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[:len(l.lines):len(l.lines)], l.version
}
