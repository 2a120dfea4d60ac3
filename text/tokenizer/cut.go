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

// Behaviour selects what a Split step does with the matches of its pattern. The values are the names in
// tokenizer.json.
type Behaviour string

// The values of Behaviour.
const (
	Isolated           Behaviour = "Isolated"           // each match becomes a separate piece
	Removed            Behaviour = "Removed"            // matches are dropped
	MergedWithPrevious Behaviour = "MergedWithPrevious" // a match is joined to the preceding text
	MergedWithNext     Behaviour = "MergedWithNext"     // a match is joined to the following text
	Contiguous         Behaviour = "Contiguous"         // adjacent matches become one piece
)

// Cut returns the step that splits a text by a regular expression in Oniguruma's syntax. If `invert` is set,
// the text between the matches is treated as the matches. Some known patterns run in hand-written scanners.
// All other patterns run in a regular-expression engine, which is about 20 times slower.
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

// matcher splits a text into consecutive parts. Each part is a match or the text between two matches.
type matcher func(text string) ([]part, error)

// part is the range text[from:to]. It is a match, or the text between two matches. A match may be empty.
type part struct {
	from, to int
	match    bool
}

// cutWhere returns the step that splits a text at the matches of `find`.
func cutWhere(find matcher, b Behaviour, invert bool) (Step, error) {
	if !slices.Contains([]Behaviour{Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous}, b) {
		return Step{}, fmt.Errorf("unknown split behavior %q: %w", printable.Short(string(b), 80),
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

// behave combines the parts of a text into pieces as b requires, and passes the range of each piece to
// `yield`.
func behave(parts []part, b Behaviour, yield func(from, to int) error) error {
	for i := 0; i < len(parts); {
		p := parts[i]
		last := i
		// joins reports whether the part with index `next` belongs to the piece that begins with part i.
		joins := func(next int) bool {
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

// single returns a matcher for single characters c for which is(c) returns true. An invalid byte never
// matches.
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

// literal returns a matcher that finds a fixed, non-empty text.
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

type expression struct {
	source string
	engine *regexp2.Regexp
	empty  bool // the pattern may match an empty text
}

const (
	// maxMatchTime limits the time of one match, because a file can contain a pattern that takes practically
	// forever.
	maxMatchTime = 2 * time.Second
	// maxPattern is the maximum length of a pattern in bytes. The longest published patterns have about 500
	// bytes.
	maxPattern = 1 << 13
)

var compiledPatterns sync.Map // cache of the compiled patterns of the built-in rules

// compile compiles a pattern.
func compile(pattern string) (*expression, error) {
	if known, ok := compiledPatterns.Load(pattern); ok {
		return known.(*expression), nil
	}
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern %q has %d bytes, but the maximum is %d",
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
	if known[pattern] { // cache only built-in patterns, because the number of patterns in files is unlimited
		compiledPatterns.Store(pattern, e)
	}
	return e, nil
}

// find is the matcher of the pattern. It converts the engine's positions, which count characters, to byte
// positions. An invalid byte counts as one character. find ignores an empty match directly after another
// match.
func (e *expression) find(text string) (parts []part, err error) {
	runes := []rune(text)
	at, passed := 0, 0 // the same position: at in bytes, passed in characters
	forward := func(n int) int {
		for ; passed < n; passed++ {
			_, width := utf8.DecodeRuneInString(text[at:])
			at += width
		}
		return at
	}
	done, last := 0, -1 // end of the last match: done in bytes, last in characters
	for search := 0; search <= len(runes); {
		m, err := e.match(runes, search)
		// A match can only fail because it takes too long. The engine's own message would contain the whole
		// text.
		if err != nil {
			return nil, fmt.Errorf("pattern %q: matching it against a text of %d bytes took longer than %v: %w",
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

// The method match finds the next match in the text. On a busy machine the engine's clock may stop and then
// jump. The method therefore also measures the time itself, and repeats a search that the engine ended too
// early.
func (e *expression) match(runes []rune, from int) (m *regexp2.Match, err error) {
	for began := time.Now(); ; {
		m, err = e.engine.FindRunesMatchStartingAt(runes, from)
		if err == nil || time.Since(began) >= maxMatchTime {
			return m, err
		}
	}
}
