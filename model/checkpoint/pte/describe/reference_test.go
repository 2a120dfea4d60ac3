package describe_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
)

// TestReferenceOfTheJSONIsFresh makes the tables of docs/reference/program-json.md from the types of the
// package and their comments.
func TestReferenceOfTheJSONIsFresh(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "..", "docs", "reference", "program-json.md")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin = "<!-- made by `go test ./model/checkpoint/pte/describe -update` -->\n"
	before, _, ok := strings.Cut(string(old), begin)
	if !ok {
		t.Fatalf("%s has no line %q", path, begin)
	}
	page := before + begin + fieldTables(t)
	if wordingtest.Updating() {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(old), page); diff != "" {
		t.Errorf("-have +want (go test -update rewrites the page):\n%s", diff)
	}
}

// fieldTables returns a table of fields for each type that the JSON output has.
func fieldTables(t *testing.T) string {
	t.Helper()
	types := map[string]*ast.TypeSpec{}
	docs := map[string]string{}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE && len(g.Specs) == 1 {
				spec := g.Specs[0].(*ast.TypeSpec)
				types[spec.Name.Name], docs[spec.Name.Name] = spec, oneLine(g.Doc)
			}
		}
	}
	r := reference{types: types}
	order := []string{"Info", "DataInfo"}
	var b strings.Builder
	for i := 0; i < len(order); i++ {
		name := order[i]
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| field | type | |\n| --- | --- | --- |\n", name, docs[name])
		for _, row := range r.rows(t, types[name].Type.(*ast.StructType)) {
			b.WriteString(row + "\n")
		}
		for _, used := range r.used {
			if !slices.Contains(order, used) {
				order = append(order, used)
			}
		}
		r.used = nil
	}
	return b.String()
}

type reference struct {
	types map[string]*ast.TypeSpec
	used  []string // structs that the rows refer to
}

// rows returns the rows of the fields of a struct. The fields of an embedded struct are rows of their own.
func (r *reference) rows(t *testing.T, s *ast.StructType) (rows []string) {
	t.Helper()
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			rows = append(rows, r.rows(t, r.types[f.Type.(*ast.Ident).Name].Type.(*ast.StructType))...)
			continue
		}
		_, tag, _ := strings.Cut(f.Tag.Value, `json:"`)
		key, options, _ := strings.Cut(strings.TrimSuffix(tag, "\"`"), ",")
		if options != "" {
			key += "` ?"
		} else {
			key += "`"
		}
		text := strings.TrimSpace(oneLine(f.Doc) + oneLine(f.Comment))
		if text == "" {
			t.Errorf("field %s has no comment", key)
		}
		if first, rest, _ := strings.Cut(text, " "); first == f.Names[0].Name { // the name in Go
			text = "`" + strings.Split(key, "`")[0] + "` " + rest
		}
		rows = append(rows, fmt.Sprintf("| `%s | %s | %s |", key, r.typeOf(f.Type), text))
	}
	return rows
}

// typeOf returns the JSON type of a Go type.
func (r *reference) typeOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return r.typeOf(e.X)
	case *ast.ArrayType:
		return "list of " + r.typeOf(e.Elt)
	case *ast.MapType:
		return "object of " + r.typeOf(e.Value)
	case *ast.SelectorExpr:
		return "string"
	case *ast.Ident:
		if spec := r.types[e.Name]; spec != nil {
			if _, ok := spec.Type.(*ast.StructType); ok {
				r.used = append(r.used, e.Name)
				return fmt.Sprintf("[%s](#%s)", e.Name, strings.ToLower(e.Name))
			}
			return "string"
		}
		switch e.Name {
		case "bool":
			return "boolean"
		case "string":
			return "string"
		}
		return "integer"
	}
	return "?"
}

// oneLine returns a comment as one line.
func oneLine(c *ast.CommentGroup) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(c.Text()), " "), "|", `\|`)
}
