package model

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the tables of defaults in docs/guide/models.md")

const modelsDoc = "../docs/guide/models.md"

// The tables of defaults in docs/guide/models.md come from the rows of architectures.
func TestDefaultsInTheDocsAreThoseOfTheRows(t *testing.T) {
	text, err := os.ReadFile(modelsDoc)
	if err != nil {
		t.Fatal(err)
	}
	got := text
	for name, in := range map[string]func(*architecture) *spelling{
		"config.json": func(a *architecture) *spelling { return &a.hf },
		"GGUF":        func(a *architecture) *spelling { return &a.gguf },
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
	if *update {
		if err := os.WriteFile(modelsDoc, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(text), string(got)); d != "" {
		t.Errorf("docs/guide/models.md is stale (- file, + rows): go test ./model -run Docs -update\n%s", d)
	}
}

// defaultsTable has a row for each key that a class of a form computes with, and a column for each class.
func defaultsTable(in func(*architecture) *spelling) string {
	var forms []*spelling
	var keys []string
	for _, a := range architectures {
		s := in(a)
		if s.names == nil {
			continue
		}
		forms = append(forms, s)
		known := s.keys.list()
		for _, o := range s.only {
			known = append(known, o.key)
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
		fmt.Fprintf(&b, " %s |", s.class.name)
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

func defaultCell(s *spelling, key string) string {
	k := s.keys
	if v, ok := s.class.defaults[key]; ok {
		return fmt.Sprint(v)
	}
	for _, o := range s.only {
		switch {
		case o.key == key && o.want == nil:
			return "not yet"
		case o.key == key:
			return fmt.Sprintf("%v only", o.want)
		}
	}
	switch {
	case !s.computes(key):
		return "ignored"
	case slices.Contains([]string{k.layers, k.dim, k.ffn, k.context, k.heads, k.eps}, key):
		return "must be stated"
	}
	return "none"
}
