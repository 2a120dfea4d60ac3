package tui

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/tui/widget"
)

// packageDir is the folder of this package.
var packageDir, _ = os.Getwd()

var temporary = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/\S*/`)

// unplaced replaces the names of temporary folders in a text.
func unplaced(text string) string { return temporary.ReplaceAllString(text, "TMP/") }

// transcripts holds what the running tests have read from their screens.
var transcripts sync.Map

// reads compares parts of the screen with testdata/TEST.golden, which -update rewrites. Tests check sentences
// of the program only this way, so rewording a sentence changes no test.
func (d *driver) reads(parts ...string) *driver {
	d.t.Helper()
	known, old := transcripts.LoadOrStore(d.t, &strings.Builder{})
	b := known.(*strings.Builder)
	if !old {
		d.t.Cleanup(func() {
			transcripts.Delete(d.t)
			if !d.t.Failed() {
				requireRead(d.t, b.String())
			}
		})
	}
	fmt.Fprintf(b, "> %s\n", unplaced(strings.Join(d.pressed, " ")))
	d.pressed = nil
	for _, part := range parts {
		lines := d.part(part)
		if part == "notice" { // ignore how it is wrapped
			lines = []string{strings.Join(strings.Fields(strings.Join(lines, " ")), " ")}
		}
		if len(lines) == 1 {
			fmt.Fprintf(b, "%s: %s\n", part, unplaced(lines[0]))
			continue
		}
		fmt.Fprintf(b, "%s:\n", part)
		for _, l := range lines {
			b.WriteString("  " + l + "\n")
		}
	}
	return d
}

// requireRead compares a transcript with its golden file. Tests may have changed the working directory, so it
// uses packageDir.
func requireRead(t testing.TB, got string) {
	t.Helper()
	path := filepath.Join(packageDir, "testdata", t.Name()+".golden")
	if wordingtest.Updating() {
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the screen differs from %s (-want +got):\n%s", filepath.Base(path), diff)
	}
}

// part returns a part of the screen, line by line. "bottom" is the dialog, the note or the hints. "over" is
// the text over the view, and "overTitle" its title.
func (d *driver) part(name string) []string {
	d.t.Helper()
	a := d.app
	m := a.rects()
	bodyH := a.h - 4 - m[regionNotice].H
	areas := map[string]widget.Rect{
		"header": m[regionHeader], "tabs": m[regionTabs], "about": m[regionAbout],
		"notice": m[regionNotice], "bottom": a.bottom(),
	}
	switch {
	case a.over != nil:
		r := a.overArea()
		areas["overTitle"], areas["over"] = widget.Area(r.X, r.Y, r.W, 1), r
	case a.empty() != "":
		areas["welcome"] = widget.Area(0, 3, a.w, bodyH)
	default:
		areas["title"], areas["list"] = m[regionTitle], m[regionList]
		areas["detailTitle"], areas["detail"] = m[regionDetailTitle], m[regionDetail]
	}
	r, ok := areas[name]
	if !ok {
		return []string{"(none)"}
	}
	screen := strings.Split(d.screen(), "\n")
	var lines []string
	for y := r.Y; y < min(r.Y+r.H, len(screen)); y++ {
		l := strings.TrimRight(ansi.Cut(screen[y], r.X, r.X+r.W), " ")
		lines = append(lines, unplaced(l))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// bottom returns the area of the dialog, the keys of a chord, the note or the hints.
func (a *App) bottom() widget.Rect {
	n := 0
	switch {
	case a.dialog != nil:
		return a.dialogArea()
	case a.chord != nil:
		n = len(a.chord.Lines(a.theme, a.w, a.h/3))
	default:
		n = len(a.noteLines(a.w))
		if n > 0 && a.over != nil {
			h := a.h - 1 - a.rects()[regionNotice].H
			return widget.Area(0, h-n, a.w, n)
		}
	}
	n = max(n, 1)
	return widget.Area(0, a.h-n, a.w, n)
}
