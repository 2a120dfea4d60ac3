package model

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/arch"
)

const modelsDoc = "../docs/guide/models.md"

// The tables of defaults in docs/guide/models.md are generated from arch.Architectures.
func TestDocumentedDefaultsMatchTheRows(t *testing.T) {
	text, err := os.ReadFile(modelsDoc)
	if err != nil {
		t.Fatal(err)
	}
	got := text
	for name, in := range map[string]func(*arch.Architecture) *arch.Spelling{
		"config.json": func(a *arch.Architecture) *arch.Spelling { return &a.Hf },
		"GGUF":        func(a *arch.Architecture) *arch.Spelling { return &a.Gguf },
	} {
		begin := []byte("<!-- Defaults of " + name + ": go test ./model -run Docs -update -->\n")
		end := []byte("<!-- end -->\n")
		before, rest, ok := bytes.Cut(got, begin)
		_, after, closed := bytes.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("docs/guide/models.md has no place for the defaults of %s", name)
		}
		got = slices.Concat(before, begin, []byte(defaultsTable(in)), end, after)
	}
	if wordingtest.Updating() {
		if err := os.WriteFile(modelsDoc, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(text), string(got)); d != "" {
		t.Errorf("docs/guide/models.md is stale (- file, + rows): go test ./model -run Docs -update\n%s", d)
	}
}

// defaultsTable returns tables with a column for each class of a file format. A table has at most six
// classes, and a row for each key that one of them computes with.
func defaultsTable(in func(*arch.Architecture) *arch.Spelling) string {
	var forms []*arch.Spelling
	for _, a := range arch.Architectures {
		if s := in(a); s.Names != nil {
			forms = append(forms, s)
		}
	}
	text := ""
	for some := range slices.Chunk(forms, 6) {
		text += defaultsOf(some)
	}
	return text
}

func defaultsOf(forms []*arch.Spelling) string {
	var keys []string
	for _, s := range forms {
		known := s.Keys.List()
		for _, o := range s.Only {
			known = append(known, o.Key)
		}
		for _, key := range known {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	var b strings.Builder
	b.WriteString("\n| key |")
	for _, s := range forms {
		fmt.Fprintf(&b, " %s |", s.Class.Name)
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(forms)+1) + "\n")
	for _, key := range keys {
		fmt.Fprintf(&b, "| `%s` |", key)
		for _, s := range forms {
			fmt.Fprintf(&b, " %s |", defaultCell(s, key))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.String()
}

func defaultCell(s *arch.Spelling, key string) string {
	k := s.Keys
	if v, ok := s.Class.Defaults[key]; ok {
		return fmt.Sprint(v)
	}
	for _, o := range s.Only {
		switch {
		case o.Key == key && o.Want == nil:
			return "not yet"
		case o.Key == key:
			return fmt.Sprintf("%v only", o.Want)
		}
	}
	switch {
	case !s.Computes(key):
		return "ignored"
	case slices.Contains([]string{k.Layers, k.Dim, k.Ffn, k.Context, k.Heads, k.Eps}, key):
		return "must be stated"
	}
	return "none"
}
