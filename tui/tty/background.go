package tty

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Whether the terminal's background is dark is asked of the terminal itself, once, before the program starts,
// and not for long: the first frame must not wait for a terminal that is silent. An answer that comes late,
// as over a slow line, is no keys: the screen is drawn again by it.

const (
	// askColor asks for the background colour (xterm's control sequences, OSC 11): answered by ESC ] 11 ;
	// rgb:RRRR/GGGG/BBBB and an end.
	askColor = "\x1b]11;?\x1b\\"
	// askDevice asks what the terminal is (DA1). Every terminal answers, in order: after that no colour is to
	// come.
	askDevice = "\x1b[c"
)

var (
	colorAnswer  = regexp.MustCompile(`\x1b\]11;rgb:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)(?:\x07|\x1b\\)`)
	deviceAnswer = regexp.MustCompile(`\x1b\[\?[0-9;]*c`)
	anyAnswer    = regexp.MustCompile(colorAnswer.String() + `|` + deviceAnswer.String())
)

// DarkBackground is the answer where the person at the terminal has not given it by COLORFGBG; dark where
// nobody says otherwise.
func DarkBackground(in, out *os.File) bool {
	if fields := strings.Split(os.Getenv("COLORFGBG"), ";"); len(fields) > 1 {
		if color, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
			return color < 7 || color == 8 // of the 16 colours: not white, nor one of the bright ones
		}
	}
	if name := os.Getenv("TERM"); name == "" || name == "dumb" {
		return true
	}
	return isDark(ask(in, out, askColor+askDevice))
}

// isDark says so of the colour in an answer, by its luma; dark where there is none.
func isDark(answer string) bool {
	m := colorAnswer.FindStringSubmatch(answer)
	if m == nil {
		return true
	}
	luma := 0.0
	for i, weight := range []float64{0.299, 0.587, 0.114} { // ITU-R BT.601
		v, err := strconv.ParseUint(m[1+i], 16, 64)
		if err != nil {
			return true
		}
		luma += weight * float64(v) / float64(uint64(1)<<(4*len(m[1+i]))-1)
	}
	return luma < 0.5
}

// Input is the terminal's input without answers that come late; late is told of them.
type Input struct {
	*os.File
	late func(dark bool)
}

// NewInput is the input of a terminal; late is told of an answer that comes late.
func NewInput(f *os.File, late func(dark bool)) Input { return Input{f, late} }

func (t Input) Read(p []byte) (int, error) {
	n, err := t.File.Read(p)
	if colorAnswer.Match(p[:n]) {
		t.late(isDark(string(p[:n])))
	}
	return copy(p, anyAnswer.ReplaceAll(p[:n], nil)), err
}
