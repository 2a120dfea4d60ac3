package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"

	"gpuscope/internal/printable"
)

// PatternError describes an invalid or unsupported part of a regular expression.
type PatternError struct {
	Pattern   string
	Construct string // the unsupported or invalid part of the pattern
	At        int    // byte index of the construct in the pattern
	Problem   string // empty if the construct is valid but not supported
}

func (e *PatternError) Error() string {
	problem := e.Problem
	if problem == "" {
		problem = "not supported yet"
	}
	return fmt.Sprintf("pattern %q: %q at byte %d: %s: %v", printable.Short(e.Pattern, 120),
		printable.Short(e.Construct, 40), e.At, problem, ErrUnsupported)
}

// Unwrap returns ErrUnsupported, so that errors.Is finds it in every PatternError.
func (e *PatternError) Unwrap() error { return ErrUnsupported }

// Limits of a pattern.
const (
	maxPatternDepth   = 100     // nesting depth of groups and classes
	maxPatternRewrite = 1 << 18 // length in bytes of the rewritten pattern
	maxRepeat         = 100_000
)

// onigPattern rewrites a pattern for regexp2. Patterns in tokenizer.json use Oniguruma's Ruby syntax.
// Character classes are expanded here, because the engine does not support all case folding, unions,
// intersections and POSIX classes. All other supported constructs have an equivalent in the engine.
type onigPattern struct {
	source string
	at     int
	depth  int
	size   int // bytes written so far; a nested part is counted once per level
}

// fragment is a rewritten part of a pattern.
type fragment struct {
	text  string
	empty bool   // the fragment may match an empty text
	word  []rune // the case-folded characters, if the fragment is case-insensitive plain text
	folds bool   // the field word is valid
}

// options are the options of a group (?imx).
type options struct{ fold, dotAll, extended bool }

// rewritePattern returns the pattern for the engine, and whether it may match an empty text.
func rewritePattern(source string) (text string, empty bool, err error) {
	p := &onigPattern{source: source}
	defer func() {
		if problem, ok := recover().(*PatternError); ok {
			err = problem
		}
	}()
	f := p.alternatives(options{})
	if p.more() {
		p.fail(p.at, "an unmatched )")
	}
	return f.text, f.empty, nil
}

func (p *onigPattern) more() bool { return p.at < len(p.source) }

func (p *onigPattern) fail(from int, problem string) {
	to := min(max(p.at, from+1), len(p.source))
	panic(&PatternError{Pattern: p.source, Construct: p.source[from:to], At: from, Problem: problem})
}

// take skips the given text if the pattern continues with this text, and reports whether it did.
func (p *onigPattern) take(text string) bool {
	if !strings.HasPrefix(p.source[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *onigPattern) next() rune {
	r, n := utf8.DecodeRuneInString(p.source[p.at:])
	if r == utf8.RuneError && n <= 1 {
		p.fail(p.at, "the pattern is not valid UTF-8 or ends too early")
	}
	p.at += n
	return r
}

// nested calls `run`, which reads a nested part. It fails if parts are nested too deeply.
func (p *onigPattern) nested(from int, run func() fragment) fragment {
	if p.depth++; p.depth > maxPatternDepth {
		p.fail(from, fmt.Sprintf("more than %d nested groups", maxPatternDepth))
	}
	defer func() { p.depth-- }()
	return run()
}

// written adds the length of a rewritten part to `size`, and fails if `size` becomes too large. It returns
// the part unchanged.
func (p *onigPattern) written(text string) string {
	if p.size += len(text); p.size > maxPatternRewrite {
		p.fail(0, fmt.Sprintf("with its character classes expanded, the pattern is longer than %d bytes",
			maxPatternRewrite))
	}
	return text
}

// alternatives reads up to the end of the pattern, or up to but excluding the closing parenthesis of a group.
func (p *onigPattern) alternatives(o options) fragment {
	all := p.sequence(o)
	for p.take("|") {
		f := p.sequence(o)
		text := all.text + "|" + f.text
		all = fragment{text: text, empty: all.empty || f.empty}
	}
	return all
}

func (p *onigPattern) sequence(o options) fragment {
	all := fragment{empty: true, folds: true}
	var b strings.Builder
	var word []rune // the preceding characters that are case-insensitive plain text
	for p.more() && p.source[p.at] != '|' && p.source[p.at] != ')' {
		if o.extended && p.skipComment() {
			continue
		}
		from := p.at
		f, last := p.atom(o)
		f = p.quantified(f, o)
		b.WriteString(p.written(f.text))
		all.empty = all.empty && f.empty
		all.folds = all.folds && f.folds
		if f.folds {
			word = append(word, f.word...)
		} else {
			word = nil
		}
		if other, found := foldsTogether(word); found {
			p.fail(from, fmt.Sprintf("not supported yet: if case is ignored, this text also matches the single character %s", other))
		}
		if last {
			break
		}
	}
	all.text, all.word = b.String(), word
	return all
}

// skipComment skips one white space character or one comment of the extended syntax.
func (p *onigPattern) skipComment() bool {
	switch p.source[p.at] {
	case ' ', '\t', '\n', '\v', '\f', '\r':
		p.at++
		return true
	case '#':
		if end := strings.IndexByte(p.source[p.at:], '\n'); end >= 0 {
			p.at += end + 1
		} else {
			p.at = len(p.source)
		}
		return true
	}
	return false
}

// atom reads the part of a pattern to which a quantifier applies. `last` is true if the atom ends the
// sequence.
func (p *onigPattern) atom(o options) (f fragment, last bool) {
	from := p.at
	switch c := p.next(); c {
	case '(':
		return p.group(from, o)
	case '[':
		return p.class(from, o), false
	case '\\':
		return p.escape(from, o), false
	case '.':
		if o.dotAll {
			return fragment{text: everything.class()}, false
		}
		return fragment{text: `[^\n]`}, false
	case '^':
		return fragment{text: `(?:\A|(?<=\n)(?!\z))`, empty: true}, false
	case '$':
		return fragment{text: `(?=\n|\z)`, empty: true}, false
	case '*', '+', '?':
		p.fail(from, "nothing to repeat")
		return f, false
	default:
		return p.literal(c, o), false
	}
}

func (p *onigPattern) literal(c rune, o options) fragment {
	if !o.fold {
		return fragment{text: escapeRune(c)}
	}
	return fragment{text: only(c).folded().class(), word: []rune(cases.Fold().String(string(c))), folds: true}
}

// quantified reads the quantifiers of an atom. In Ruby's syntax a + after ?, * or + makes the quantifier
// possessive, but a + after an interval repeats the interval. A ? after {n} makes {n} optional.
func (p *onigPattern) quantified(f fragment, o options) fragment {
	for p.more() {
		if o.extended && p.skipComment() {
			continue
		}
		least, text, interval := 0, "", false
		switch {
		case p.take("*"):
			text = "*"
		case p.take("+"):
			least, text = 1, "+"
		case p.take("?"):
			text = "?"
		default:
			least, text, interval = p.interval()
		}
		if text == "" {
			return f
		}
		single := interval && !strings.Contains(text, ",")
		all := "(?:" + f.text + ")" + text
		switch {
		case !single && p.take("?"):
			all += "?"
		case !interval && p.take("+"):
			all = "(?>" + all + ")"
		}
		f = fragment{text: p.written(all), empty: f.empty || least == 0}
	}
	return f
}

// interval reads {n}, {n,}, {,n} or {n,m}. Any other text with a brace is not a quantifier.
func (p *onigPattern) interval() (least int, text string, ok bool) {
	from := p.at
	inside, _, closed := strings.Cut(p.source[p.at:], "}")
	inside, opened := strings.CutPrefix(inside, "{")
	low, high, comma := strings.Cut(inside, ",")
	decimal := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	if !opened || !closed || !decimal(low) || !decimal(high) || low+high == "" {
		return 0, "", false
	}
	p.at += len(inside) + len("{}")
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if s != "" && (err != nil || n > maxRepeat) {
			p.fail(from, fmt.Sprintf("the repetition count is too large: the maximum is %d", maxRepeat))
		}
		return n
	}
	least = number(low)
	switch most := number(high); {
	case !comma:
		return least, fmt.Sprintf("{%d}", least), true
	case high == "":
		return least, fmt.Sprintf("{%d,}", least), true
	case most < least:
		p.fail(from, "the minimum of the repetition count is larger than its maximum")
		return 0, "", false
	default:
		return least, fmt.Sprintf("{%d,%d}", least, most), true
	}
}

// group reads the rest of a group after its parenthesis. All groups become non-capturing, because nothing
// refers to them.
func (p *onigPattern) group(from int, o options) (f fragment, last bool) {
	look := func(open string) fragment {
		return fragment{text: open + p.inside(from, o).text + ")", empty: true}
	}
	switch {
	case p.take("?#"):
		for p.next() != ')' {
		}
		return fragment{empty: true, folds: true}, false
	case p.take("?:"):
		f = p.inside(from, o)
		f.text = "(?:" + f.text + ")"
		return f, false
	case p.take("?>"):
		f = p.inside(from, o)
		return fragment{text: "(?>" + f.text + ")", empty: f.empty}, false
	case p.take("?="):
		return look("(?="), false
	case p.take("?!"):
		return look("(?!"), false
	case p.take("?<="):
		return look("(?<="), false
	case p.take("?<!"):
		return look("(?<!"), false
	case p.take("?<"):
		p.groupName(from, '>')
	case p.take("?'"):
		p.groupName(from, '\'')
	case p.take("?"):
		return p.optionGroup(from, o)
	}
	f = p.inside(from, o)
	f.text = "(?:" + f.text + ")"
	return f, false
}

func (p *onigPattern) groupName(from int, end rune) {
	for c := p.next(); c != end; c = p.next() {
		if c == '(' || c == ')' {
			p.fail(from, "")
		}
	}
}

// inside reads the content of a group and its closing parenthesis.
func (p *onigPattern) inside(from int, o options) fragment {
	f := p.nested(from, func() fragment { return p.alternatives(o) })
	if !p.take(")") {
		p.fail(from, "an unmatched (")
	}
	return f
}

// optionGroup reads (?imx-imx:...) or (?imx-imx). The second form applies up to the end of the enclosing
// group, including all further alternatives.
func (p *onigPattern) optionGroup(from int, o options) (f fragment, last bool) {
	on := true
	for {
		switch p.next() {
		case 'i':
			o.fold = on
		case 'm':
			o.dotAll = on
		case 'x':
			o.extended = on
		case '-':
			on = false
		case ':':
			f = p.inside(from, o)
			f.text = "(?:" + f.text + ")"
			return f, false
		case ')':
			f = p.nested(from, func() fragment { return p.alternatives(o) })
			f.text = "(?:" + f.text + ")"
			return f, true
		default:
			p.fail(from, "")
		}
	}
}

// anchors maps escapes that match a position to the engine's syntax.
var anchors = map[rune]string{
	'A': `\A`, 'z': `\z`, 'Z': `(?=\n?\z)`, 'G': `\G`,
}

// escapedSets maps the lower-case letter of an escape to a set of characters. The upper-case letter means the
// complement of the set.
var escapedSets = map[rune]func() charset{'d': digits, 'h': hexDigits, 's': whiteSpace, 'w': escapeW}

// escape reads the rest of an escape outside of classes.
func (p *onigPattern) escape(from int, o options) fragment {
	at := p.at
	switch c := p.next(); c {
	case 'b', 'B':
		word := escapeW().class()
		here := "(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + ")"
		if c == 'B' {
			return fragment{text: "(?!" + here + ")", empty: true}
		}
		return fragment{text: "(?:" + here + ")", empty: true}
	case 'R':
		return fragment{text: `(?>\r\n|[\n-\r\u0085\u2028\u2029])`}
	case 'X':
		return fragment{text: graphemeCluster()}
	case 'N':
		return fragment{text: `[^\n]`}
	case 'O':
		return fragment{text: everything.class()}
	case 'k', 'g', 'K', 'y', 'Y', '4', '5', '6', '7', '8', '9':
		p.fail(from, "")
	case '1', '2', '3': // three octal digits are the code of a character
		if len(p.source)-at < 3 || strings.Trim(p.source[at:at+3], "01234567") != "" {
			p.fail(from, "")
		}
	default:
		if text := anchors[c]; text != "" {
			return fragment{text: text, empty: true}
		}
	}
	p.at = at
	set, c, isSet := p.member(from)
	if isSet {
		return fragment{text: set.class()}
	}
	return p.literal(c, o)
}

// controls maps escapes to single control characters.
var controls = map[rune]rune{'a': 7, 'b': 8, 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b}

// member reads the rest of an escape that represents a character or a set of characters.
func (p *onigPattern) member(from int) (set charset, c rune, isSet bool) {
	c = p.next()
	if control, ok := controls[c]; ok {
		return nil, control, false
	}
	lowerCase := c | 0x20
	if named := escapedSets[lowerCase]; named != nil && c < utf8.RuneSelf {
		if c != lowerCase {
			return named().not(), 0, true
		}
		return named(), 0, true
	}
	switch c {
	case 'p', 'P':
		if p.take("{") {
			return p.propertySet(from, c == 'P'), 0, true
		}
	case 'x':
		if p.take("{") {
			return nil, p.number(from, 16, 1, 8, "}"), false
		}
		return nil, p.number(from, 16, 1, 2, ""), false
	case 'u':
		return nil, p.number(from, 16, 4, 4, ""), false
	case 'c':
		return nil, p.next() & 0x9f, false
	case 'C', 'M':
		p.fail(from, "")
	case '0', '1', '2', '3', '4', '5', '6', '7':
		p.at--
		return nil, p.number(from, 8, 1, 3, ""), false
	}
	return nil, c, false
}

// number reads the digits of a character code.
func (p *onigPattern) number(from, base, least, most int, end string) rune {
	begin := p.at
	for p.more() && p.at-begin < most {
		if _, err := strconv.ParseUint(p.source[p.at:p.at+1], base, 8); err != nil {
			break
		}
		p.at++
	}
	n, _ := strconv.ParseUint(p.source[begin:p.at], base, 64)
	if p.at-begin < least || n > utf8.MaxRune || n >= 0xd800 && n <= 0xdfff || !p.take(end) {
		p.fail(from, "not a valid character code")
	}
	return rune(n)
}

// propertySet reads the rest of \p{name} or \p{^name}.
func (p *onigPattern) propertySet(from int, negated bool) charset {
	if p.take("^") {
		negated = !negated
	}
	name, _, closed := strings.Cut(p.source[p.at:], "}")
	if !closed {
		p.fail(from, "an unmatched {")
	}
	p.at += len(name) + 1
	set, ok := property(name)
	if !ok {
		p.fail(from, "unknown property")
	}
	if negated {
		return set.not()
	}
	return set
}
