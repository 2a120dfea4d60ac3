package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryTestThatTheDocsNameExists(t *testing.T) {
	var sources strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../docs/*/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`")
		for _, m := range names.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(sources.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s, and there is no such test", doc, m[1])
			}
		}
	}
}
