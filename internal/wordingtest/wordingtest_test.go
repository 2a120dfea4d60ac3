package wordingtest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// recorder is a test whose failures are counted instead of reported.
type recorder struct {
	testing.TB
	name   string
	errors []string
	ended  []func()
}

func (r *recorder) Name() string     { return r.name }
func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.ended = append(r.ended, f) }
func (r *recorder) Skipped() bool    { return false }
func (r *recorder) Failed() bool     { return len(r.errors) > 0 }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }

func TestMessagesAreComparedWithTheFile(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(update bool, said map[string]string) int {
		if err := flag.Set("update", fmt.Sprint(update)); err != nil {
			t.Fatal(err)
		}
		defer flag.Set("update", "false")
		r := &recorder{TB: t, name: "TestOther/case"}
		g := New(r)
		for name, text := range said {
			g.Error(name, errors.New(text))
		}
		for _, f := range r.ended {
			f()
		}
		return len(r.errors)
	}
	first := map[string]string{"a: b": "a message: with a colon", "two lines": "one\ntwo"}
	if n := run(false, first); n == 0 {
		t.Error("a missing file is accepted")
	}
	if n := run(true, first); n > 0 {
		t.Fatalf("writing reports %d errors", n)
	}
	if b, err := os.ReadFile(filepath.Join("testdata", "TestOther", "case.golden")); err != nil ||
		string(b) != "a:b: a message: with a colon\ntwo lines: one\\ntwo\n" {
		t.Errorf("the file is %q, %v", b, err)
	}
	if n := run(false, first); n > 0 {
		t.Errorf("%d errors for equal messages", n)
	}
	for name, other := range map[string]map[string]string{
		"a message that changed": {"a: b": "another message", "two lines": "one\ntwo"},
		"a case that is new":     {"a: b": "a message: with a colon", "two lines": "one\ntwo", "c": "new"},
	} {
		if n := run(false, other); n != 1 {
			t.Errorf("%s: %d errors, want 1", name, n)
		}
	}
}

func TestACaseWithoutAnErrorFails(t *testing.T) {
	r := &recorder{TB: t, name: "TestOther"}
	g := New(r)
	g.Error("no error", nil)
	g.Text("same", "text")
	if g.Text("same", "text"); len(r.errors) != 2 {
		t.Errorf("%d errors, want one for nil and one for the name that is there twice", len(r.errors))
	}
}

func TestMentionsWantsFactsInTheirOrder(t *testing.T) {
	t.Parallel()
	err := errors.New(`file "a": 12 bytes, at most 9`)
	for facts, want := range map[string]bool{`"a" 12 9`: true, "": true, `9 12`: false, `"a" 13`: false} {
		if Mentions(err, facts) != want {
			t.Errorf("Mentions(%v, %q) = %v", err, facts, !want)
		}
	}
	if Mentions(nil, "") {
		t.Error("nil mentions something")
	}
}
