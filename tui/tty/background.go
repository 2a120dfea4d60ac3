package tty

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// The program asks the terminal once, at the start, whether the background is dark. It waits only briefly, so
// that the first frame does not wait for a terminal that never answers. If the answer arrives later, the
// program redraws the screen in the right colors.

const (
	// askColor asks for the background color (xterm control sequence OSC 11). The answer is ESC ] 11 ;
	// rgb:RRRR/GGGG/BBBB followed by BEL or ESC \.
	askColor = "\x1b]11;?\x1b\\"
	// askDevice asks for the type of the terminal (DA1). Every terminal answers askDevice, and answers
	// arrive in order: after this answer, the answer to askColor cannot follow anymore.
	askDevice = "\x1b[c"
)

var (
	colorAnswer  = regexp.MustCompile(`\x1b\]11;rgb:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)(?:\x07|\x1b\\)`)
	deviceAnswer = regexp.MustCompile(`\x1b\[\?[0-9;]*c`)
	anyAnswer    = regexp.MustCompile(colorAnswer.String() + `|` + deviceAnswer.String())
)

// DarkBackground reports whether the terminal's background is dark. The environment variable COLORFGBG
// takes precedence over the terminal's answer. The result is true if neither gives an answer.
func DarkBackground(in, out *os.File) bool {
	if fields := strings.Split(os.Getenv("COLORFGBG"), ";"); len(fields) > 1 {
		if color, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
			return color < 7 || color == 8 // of the 16 colors, 7 is white and 9 to 15 are bright
		}
	}
	if name := os.Getenv("TERM"); name == "" || name == "dumb" {
		return true
	}
	return isDark(ask(in, out, askColor+askDevice))
}

// isDark reports whether the color in an answer is dark, by luma. It returns true if the answer has no color.
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

// Input reads the terminal's input and removes late answers about the background. It calls `late` for each of
// these answers.
type Input struct {
	*os.File
	late func(dark bool)
}

// NewInput returns the input of a terminal. It calls `late` for each late answer about the background.
func NewInput(f *os.File, late func(dark bool)) Input { return Input{f, late} }

func (t Input) Read(p []byte) (int, error) {
	n, err := t.File.Read(p)
	if colorAnswer.Match(p[:n]) {
		t.late(isDark(string(p[:n])))
	}
	return copy(p, anyAnswer.ReplaceAll(p[:n], nil)), err
}
