package chat

import (
	"strconv"
	"strings"
	"time"

	"gpuscope/text/chat/internal/raise"
)

// directive is a strftime code in the C locale. It produces a text, or a number with a width and a fill
// character.
type directive struct {
	text   func(t time.Time) string
	number func(t time.Time) int64
	width  int
	fill   byte
	plain  bool // accepts no flags and no width
}

func layout(text string) directive {
	return directive{text: func(t time.Time) string { return t.Format(text) }}
}

func counted(width int, fill byte, number func(t time.Time) int64) directive {
	return directive{number: number, width: width, fill: fill}
}

// hour12 returns the hour on a 12-hour clock.
func hour12(t time.Time) int64 { return int64((t.Hour()+11)%12 + 1) }

// weekOf returns a function for the week of the year. Weeks start on the given weekday, and the days before
// the first such day are in week 0.
func weekOf(begins time.Weekday) func(t time.Time) int64 {
	return func(t time.Time) int64 { return int64(t.YearDay()+6-int(t.Weekday()-begins+7)%7) / 7 }
}

func microsecond(t time.Time) int64 { return int64(t.Nanosecond() / 1000) }

func isoYear(t time.Time) int64 {
	year, _ := t.ISOWeek()
	return int64(year)
}

// directives holds the strftime codes by letter. The time zone is empty, as for Python's datetime.now().
var directives = map[byte]directive{
	'a': layout("Mon"), 'A': layout("Monday"), 'b': layout("Jan"), 'B': layout("January"), 'h': layout("Jan"),
	'c': layout("Mon Jan _2 15:04:05 2006"), 'x': layout("01/02/06"), 'X': layout("15:04:05"),
	'D': layout("01/02/06"), 'F': layout("2006-01-02"), 'R': layout("15:04"), 'T': layout("15:04:05"),
	'r': layout("03:04:05 PM"), 'p': layout("PM"), 'P': layout("pm"), 'n': layout("\n"), 't': layout("\t"),
	'%': layout("%"), 'z': layout(""), 'Z': layout(""),
	'd': counted(2, '0', func(t time.Time) int64 { return int64(t.Day()) }),
	'e': counted(2, ' ', func(t time.Time) int64 { return int64(t.Day()) }),
	'm': counted(2, '0', func(t time.Time) int64 { return int64(t.Month()) }),
	'y': counted(2, '0', func(t time.Time) int64 { return int64(t.Year() % 100) }),
	'Y': counted(1, '0', func(t time.Time) int64 { return int64(t.Year()) }),
	'C': counted(2, '0', func(t time.Time) int64 { return int64(t.Year() / 100) }),
	'G': counted(1, '0', isoYear),
	'g': counted(2, '0', func(t time.Time) int64 { return isoYear(t) % 100 }),
	'H': counted(2, '0', func(t time.Time) int64 { return int64(t.Hour()) }),
	'k': counted(2, ' ', func(t time.Time) int64 { return int64(t.Hour()) }),
	'I': counted(2, '0', hour12),
	'l': counted(2, ' ', hour12),
	'M': counted(2, '0', func(t time.Time) int64 { return int64(t.Minute()) }),
	'S': counted(2, '0', func(t time.Time) int64 { return int64(t.Second()) }),
	's': counted(1, '0', func(t time.Time) int64 { return t.Unix() }),
	'f': {number: microsecond, width: 6, fill: '0', plain: true},
	'j': counted(3, '0', func(t time.Time) int64 { return int64(t.YearDay()) }),
	'u': counted(1, '0', func(t time.Time) int64 { return int64(t.Weekday()+6)%7 + 1 }),
	'w': counted(1, '0', func(t time.Time) int64 { return int64(t.Weekday()) }),
	'U': counted(2, '0', weekOf(time.Sunday)),
	'W': counted(2, '0', weekOf(time.Monday)),
	'V': counted(2, '0', func(t time.Time) int64 {
		_, week := t.ISOWeek()
		return int64(week)
	}),
}

// strftime formats a time as Python does on Linux. It supports a width and the flags of the GNU C library:
// _ pads with spaces, 0 pads with zeros, - does not pad, ^ converts to upper case, and # swaps the case.
func (s *state) strftime(at time.Time, format string) string {
	s.spend(len(format))
	var b strings.Builder
	for rest := format; rest != ""; {
		text, code, found := strings.Cut(rest, "%")
		b.WriteString(text)
		if !found {
			break
		}
		n := len(code) - len(strings.TrimLeft(code, "_-0^#"))
		flags := code[:n]
		digits, code := s.digits(code[n:])
		code = strings.TrimLeft(code, "EO") // modifiers without effect in the C locale
		if code == "" {
			raise.At(s.line, "strftime_now: the format %q ends inside a code", format)
		}
		d, ok := directives[code[0]]
		if !ok || d.plain && (flags != "" || digits >= 0) {
			raise.At(s.line, "strftime_now: unknown code %%%c in %q", code[0], format)
		}
		text = s.directed(d, at, flags, digits)
		s.spend(len(text))
		b.WriteString(text)
		rest = code[1:]
	}
	return b.String()
}

// directed formats one code.
func (s *state) directed(d directive, at time.Time, flags string, width int64) string {
	fill, text := byte(' '), ""
	if d.number != nil {
		fill = d.fill
		text = strconv.FormatInt(d.number(at), 10)
	} else {
		text = d.text(at)
	}
	for _, flag := range flags {
		switch flag {
		case '_':
			fill = ' '
		case '0':
			fill = '0'
		case '-':
			fill = 0
		case '^':
			text = strings.ToUpper(text)
		case '#':
			if upper := strings.ToUpper(text); strings.ContainsAny(text, " 0123456789") {
			} else if text != upper {
				text = upper
			} else {
				text = strings.ToLower(text)
			}
		}
	}
	if fill == 0 {
		fill = ' '
	} else {
		width = max(width, int64(d.width))
	}
	missing := max(0, width-int64(len(text)))
	s.spendWidth(missing)
	return strings.Repeat(string(fill), int(missing)) + text
}
