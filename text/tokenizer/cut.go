package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"gpuscope/internal/printable"
)

// Behaviour says what becomes of the matches of a pattern that cuts, by the names of tokenizer.json.
type Behaviour string

// The behaviours.
const (
	Isolated           Behaviour = "Isolated" // a match is a piece of its own
	Removed            Behaviour = "Removed"
	MergedWithPrevious Behaviour = "MergedWithPrevious" // with what stands before it
	MergedWithNext     Behaviour = "MergedWithNext"
	Contiguous         Behaviour = "Contiguous" // with the matches that follow on it
)

// Cut is the step that cuts a text by a regular expression in Oniguruma's syntax. With invert what lies
// between the matches counts as the matches. Known patterns are done by a scanner, others by an
// interpreter that takes some 20 times as long.
func Cut(pattern string, b Behaviour, invert bool) (Step, error) {
	if scan := scanners[pattern]; scan != nil && b == Isolated {
		return Step{cut: scan.cut}, nil
	}
	compiled, err := compile(pattern)
	if err != nil {
		return Step{}, err
	}
	return cutWhere(compiled.find, b, invert)
}

// matcher gives the parts of a text, which cover it: what it looks for and what is around.
type matcher func(text string) ([]part, error)

// part is text[from:to], a match or what is before, between or after matches. A match may be empty.
type part struct {
	from, to int
	match    bool
}

// cutWhere is the step that cuts a text at what a matcher finds.
func cutWhere(find matcher, b Behaviour, invert bool) (Step, error) {
	if !slices.Contains([]Behaviour{Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous}, b) {
		return Step{}, fmt.Errorf("split behaviour %q is not known: %w", printable.Short(string(b), 80),
			ErrUnsupported)
	}
	return Step{cut: func(text string, yield func(from, to int) error) error {
		parts, err := find(text)
		if err != nil {
			return err
		}
		if invert {
			for i := range parts {
				parts[i].match = !parts[i].match
			}
		}
		return behave(parts, b, yield)
	}}, nil
}

func (next scanner) cut(text string, yield func(from, to int) error) error {
	for at := 0; at < len(text); {
		n := next(text[at:])
		if err := yield(at, at+n); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// behave gives the pieces that a behaviour makes of the parts of a text.
func behave(parts []part, b Behaviour, yield func(from, to int) error) error {
	for i := 0; i < len(parts); {
		p := parts[i]
		last := i
		joins := func(next int) bool { // whether the part of that number goes with those since i
			if next >= len(parts) {
				return false
			}
			switch b {
			case MergedWithPrevious:
				return parts[next].match && !parts[next-1].match
			case MergedWithNext:
				return parts[next-1].match && !parts[next].match
			case Contiguous:
				return parts[next].match == parts[next-1].match
			}
			return false
		}
		for joins(last + 1) {
			last++
		}
		if to := parts[last].to; p.from < to && (b != Removed || !p.match) {
			if err := yield(p.from, to); err != nil {
				return err
			}
		}
		i = last + 1
	}
	return nil
}

// single finds each character of a kind. An invalid byte is none of them.
func single(is func(rune) bool) matcher {
	return func(text string) (parts []part, err error) {
		done := 0
		for at, r := range text {
			if !is(r) {
				continue
			}
			to := at + utf8.RuneLen(r)
			if r == utf8.RuneError && !strings.HasPrefix(text[at:], string(r)) {
				continue
			}
			if done < at {
				parts = append(parts, part{done, at, false})
			}
			parts = append(parts, part{at, to, true})
			done = to
		}
		return appendRest(parts, done, text), nil
	}
}

func appendRest(parts []part, done int, text string) []part {
	if done < len(text) {
		parts = append(parts, part{done, len(text), false})
	}
	return parts
}

// literal finds a text, which is not empty.
func literal(wanted string) matcher {
	return func(text string) (parts []part, err error) {
		done := 0
		for {
			i := strings.Index(text[done:], wanted)
			if i < 0 {
				return appendRest(parts, done, text), nil
			}
			if i > 0 {
				parts = append(parts, part{done, done + i, false})
			}
			done += i + len(wanted)
			parts = append(parts, part{done - len(wanted), done, true})
		}
	}
}

// expression is a compiled pattern.
type expression struct {
	source string
	engine *regexp2.Regexp
	empty  bool // whether it may match no characters
}

const (
	// maxMatchTime is how long one match of a pattern may take: those of a file can be made so that
	// they never come to an end.
	maxMatchTime = 2 * time.Second
	// maxPattern is how long a pattern may be, in bytes; the longest published ones have some 500.
	maxPattern = 1 << 13
)

var compiledPatterns sync.Map // the patterns of the rules

// compile reads a pattern.
func compile(pattern string) (*expression, error) {
	if known, ok := compiledPatterns.Load(pattern); ok {
		return known.(*expression), nil
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern %q has %d bytes, at most %d are possible",
			printable.Short(pattern, 80), len(pattern), maxPattern)
	}
	rewritten, empty, err := rewritePattern(pattern)
	if err != nil {
		return nil, err
	}
	engine, err := regexp2.Compile(rewritten, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %v: %w", printable.Short(pattern, 120), err, ErrUnsupported)
	}
	engine.MatchTimeout = maxMatchTime
	e := &expression{source: pattern, engine: engine, empty: empty}
	if known[pattern] { // not those of files, of which there is no end
		compiledPatterns.Store(pattern, e)
	}
	return e, nil
}

// find is the matcher of a pattern. The engine counts characters, an invalid byte as one. Right after a
// match no empty one counts.
func (e *expression) find(text string) (parts []part, err error) {
	runes := []rune(text)
	at, passed := 0, 0 // the same place in bytes and in characters
	forward := func(n int) int {
		for ; passed < n; passed++ {
			_, width := utf8.DecodeRuneInString(text[at:])
			at += width
		}
		return at
	}
	done, last := 0, -1 // the end of the last match in bytes, and in characters
	for search := 0; search <= len(runes); {
		m, err := e.match(runes, search)
		if err != nil { // time alone makes a match fail, and the engine's words for it have all of the text
			return nil, fmt.Errorf("pattern %q: a match in %d bytes of text took longer than %v: %w",
				printable.Short(e.source, 120), len(text), maxMatchTime, ErrUnsupported)
		}
		if m == nil {
			break
		}
		if m.Length == 0 && m.Index == last {
			search++
			continue
		}
		search = m.Index + m.Length
		last = search
		from := forward(m.Index)
		to := forward(search)
		if done < from {
			parts = append(parts, part{done, from, false})
		}
		parts = append(parts, part{from, to, true})
		done = to
	}
	return appendRest(parts, done, text), nil
}

// match finds the next match. The engine's clock may stand still on a busy machine and then jump, so that
// the time is measured here as well.
func (e *expression) match(runes []rune, from int) (m *regexp2.Match, err error) {
	for began := time.Now(); ; {
		m, err = e.engine.FindRunesMatchStartingAt(runes, from)
		if err == nil || time.Since(began) >= maxMatchTime {
			return m, err
		}
	}
}
