// Package strftime implements the codes of Python's strftime.
package strftime

import "time"

// Code is a strftime code in the C locale. It produces either a text, or a number that is padded to a width
// with a fill character.
type Code struct {
	Text   func(t time.Time) string
	Number func(t time.Time) int64
	Width  int
	Fill   byte
	Plain  bool // allows neither flags nor a width
}

func layout(text string) Code {
	return Code{Text: func(t time.Time) string { return t.Format(text) }}
}

func counted(width int, fill byte, number func(t time.Time) int64) Code {
	return Code{Number: number, Width: width, Fill: fill}
}

// hour12 returns the hour on a 12-hour clock.
func hour12(t time.Time) int64 { return int64((t.Hour()+11)%12 + 1) }

// weekOf returns a function that computes the week of the year. Weeks begin on the given weekday. The days
// before the first such weekday are in week 0.
func weekOf(begins time.Weekday) func(t time.Time) int64 {
	return func(t time.Time) int64 { return int64(t.YearDay()+6-int(t.Weekday()-begins+7)%7) / 7 }
}

func microsecond(t time.Time) int64 { return int64(t.Nanosecond() / 1000) }

func isoYear(t time.Time) int64 {
	year, _ := t.ISOWeek()
	return int64(year)
}

// Codes holds the strftime codes by letter. The time zone is empty, as for Python's datetime.now().
var Codes = map[byte]Code{
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
	'f': {Number: microsecond, Width: 6, Fill: '0', Plain: true},
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
