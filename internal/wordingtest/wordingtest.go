// Package wordingtest compares the messages that a test sees with a golden file. A message can then be
// reworded without a change of any test: go test -update rewrites the file.
package wordingtest

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/charmbracelet/x/exp/golden" // defines the flag -update
)

// Updating reports whether the tests run with -update, and so rewrite their golden files.
func Updating() bool { return flag.Lookup("update").Value.String() == "true" }

// Golden holds the messages of one test, each with the name of its case. When the test ends, it compares
// them with testdata/TEST.golden, which has one line "case: message" for each message.
type Golden struct {
	t    testing.TB
	path string
	mu   sync.Mutex
	said []line
}

type line struct{ name, text string }

// New returns the golden file of a test. Call it before the test changes its working directory. A test with
// subtests calls New once, in the outer test. Subtests that -run excludes are not compared.
func New(t testing.TB) *Golden {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	g := &Golden{t: t, path: filepath.Join(dir, "testdata", t.Name()+".golden")}
	t.Cleanup(g.compare)
	return g
}

// Error adds the message of the error that a case must return. It fails the test if `err` is nil.
func (g *Golden) Error(name string, err error) {
	g.t.Helper()
	if err == nil {
		g.t.Errorf("%s: no error", name)
		return
	}
	g.Text(name, err.Error())
}

// Text adds the message of a case. The names of cases must differ. A message must be the same on every
// machine, so replace temporary folders and times in it before the call.
func (g *Golden) Text(name, text string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	name = strings.ReplaceAll(escape(name), ": ", ":")
	if slices.ContainsFunc(g.said, func(l line) bool { return l.name == name }) {
		g.t.Errorf("two cases are named %q", name)
		return
	}
	g.said = append(g.said, line{name, escape(text)})
}

// Mentions reports whether an error contains the names and numbers in `facts`, in the same order. `facts` is
// a list separated by spaces. Use Mentions where a golden file does not fit, for example because other parts
// of the message differ between machines.
func Mentions(err error, facts string) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	for fact := range strings.FieldsSeq(facts) {
		_, after, found := strings.Cut(text, fact)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// escape keeps a message on one line.
func escape(s string) string {
	return strings.NewReplacer("\\", `\\`, "\n", `\n`, "\r", `\r`).Replace(s)
}

// compare compares the messages with the file, or writes the file with -update. Cases run in any order, so
// the file is sorted by their names.
func (g *Golden) compare() {
	g.t.Helper()
	if g.t.Skipped() || len(g.said) == 0 {
		return
	}
	slices.SortFunc(g.said, func(a, b line) int { return strings.Compare(a.name, b.name) })
	if Updating() {
		if g.t.Failed() {
			return
		}
		var b strings.Builder
		for _, l := range g.said {
			b.WriteString(l.name + ": " + l.text + "\n")
		}
		err := os.MkdirAll(filepath.Dir(g.path), 0o755)
		if err = errors.Join(err, os.WriteFile(g.path, []byte(b.String()), 0o644)); err != nil {
			g.t.Error(err)
		}
		return
	}
	file, err := os.ReadFile(g.path)
	if err != nil {
		g.t.Errorf("%v: run go test -update to write the file", err)
		return
	}
	want := map[string]string{}
	for l := range strings.Lines(string(file)) {
		name, text, _ := strings.Cut(strings.TrimSuffix(l, "\n"), ": ")
		want[name] = text
	}
	for _, l := range g.said {
		if text, ok := want[l.name]; !ok || text != l.text {
			g.t.Errorf("%s: the message is %q, but %s has %q: run go test -update to accept the message",
				l.name, l.text, filepath.Base(g.path), text)
		}
		delete(want, l.name)
	}
	for name := range want {
		if flag.Lookup("test.run").Value.String() == "" {
			g.t.Errorf("%s has case %q, but no test ran it: run go test -update to remove it",
				filepath.Base(g.path), name)
		}
	}
}
