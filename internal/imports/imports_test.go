package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "gpuscope"

// rule lists what a package may import. Names are relative to the module; "x/..." means x and everything
// below it.
type rule struct {
	pkg  string
	may  []string // packages of this module
	test []string // additional packages for tests
}

// readRules reads the rules from the table in docs/internals/architecture.md.
func readRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "internals", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.HasPrefix(strings.TrimSpace(cells[0]), "`") {
			continue
		}
		r := rule{pkg: quoted(cells[0])[0], may: quoted(cells[2]), test: quoted(cells[3])}
		switch strings.TrimSpace(cells[2]) {
		case "everything":
			r.may = []string{"..."}
		case "nothing":
		default:
			if len(r.may) == 0 {
				t.Errorf("docs/internals/architecture.md: what %s may import is %q: want packages, everything or nothing", r.pkg, cells[2])
			}
		}
		rules = append(rules, r)
	}
	if len(rules) == 0 {
		t.Fatal("docs/internals/architecture.md has no table of packages")
	}
	return rules
}

// quoted returns the words between backquotes.
func quoted(cell string) []string {
	var words []string
	for i, word := range strings.Split(cell, "`") {
		if i%2 == 1 {
			words = append(words, word)
		}
	}
	return words
}

// support reports whether a package is test support or a program for developers. Any test may import it, but
// other code may not.
func support(name string) bool {
	return name == "engine/gpu/fake" || name == "internal/randommodel" || strings.HasSuffix(name, "test")
}

// outside lists external modules and the only packages that may import them, tests included.
var outside = []struct {
	path string
	may  []string
}{
	{"github.com/charmbracelet/bubbletea", []string{"tui/..."}},
	{"github.com/charmbracelet/lipgloss", []string{"tui/..."}},
	{"github.com/charmbracelet/bubbles", []string{"tui/..."}},
	{"github.com/cogentcore/webgpu", []string{"engine/gpu/wgpu"}},
	{"github.com/parquet-go/parquet-go", []string{"trace/export/fleet"}},
	{"github.com/spf13/pflag", []string{"cmd/gpuscope/..."}},
}

// testsOnly lists modules that the program must not contain.
var testsOnly = []string{
	"testing", "pgregory.net/rapid", "github.com/google/go-cmp", "github.com/creack/pty",
	"github.com/santhosh-tekuri/jsonschema", "go.opentelemetry.io",
	"github.com/charmbracelet/x/vt", "github.com/charmbracelet/x/exp/golden",
}

// pkg is what go list prints about a package.
type pkg struct {
	ImportPath                                   string
	Imports, TestImports, XTestImports, CgoFiles []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func TestPackagesImportOnlyWhatTheirRuleAllows(t *testing.T) {
	t.Parallel()
	rules := readRules(t)
	used := map[string]bool{}
	for _, p := range list(t, "CGO_ENABLED=1") {
		r, ok := find(rules, p.name())
		if !ok {
			t.Errorf("%s has no line in the table of docs/internals/architecture.md: add one", p.name())
			continue
		}
		used[r.pkg] = true
		for _, imported := range own(p.Imports) {
			if support(imported) && !support(p.name()) || !matchAny(r.may, imported) && !support(imported) {
				t.Errorf("%s imports %s; it may import %q", p.name(), imported, r.may)
			}
		}
		for _, imported := range own(append(p.TestImports, p.XTestImports...)) {
			if imported != p.name() && !matchAny(r.may, imported) && !matchAny(r.test, imported) &&
				!support(imported) {
				t.Errorf("a test of %s imports %s; it may import %q and test support", p.name(), imported,
					append(r.may, r.test...))
			}
		}
	}
	for _, r := range rules {
		if !used[r.pkg] {
			t.Errorf("docs/internals/architecture.md has a line for %s, but there is no such package", r.pkg)
		}
	}
}

func TestBindingAndTerminalStayInTheirPackages(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "CGO_ENABLED=1") {
		all := append(append(p.Imports, p.TestImports...), p.XTestImports...)
		for _, o := range outside {
			if !matchAny(o.may, p.name()) && within(o.path, all) {
				t.Errorf("%s imports %s, which only %q may import", p.name(), o.path, o.may)
			}
		}
	}
}

func TestTestSupportStaysInTests(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "CGO_ENABLED=1") {
		if support(p.name()) {
			continue
		}
		for _, path := range testsOnly {
			if within(path, p.Imports) {
				t.Errorf("%s imports %s outside of its tests", p.name(), path)
			}
		}
	}
}

// Without cgo there is no WebGPU. The program then has no adapter, but all of it still builds.
func TestOnlyTheBindingNeedsCgo(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "CGO_ENABLED=1") {
		if len(p.CgoFiles) > 0 && p.name() != "engine/gpu/wgpu" {
			t.Errorf("%s has cgo files %q", p.name(), p.CgoFiles)
		}
	}
	for _, p := range list(t, "CGO_ENABLED=0", "-deps", module+"/...") {
		if within("github.com/cogentcore/webgpu", []string{p.ImportPath}) {
			t.Errorf("built without cgo the program still depends on %s", p.ImportPath)
		}
	}
}

func TestMatchDistinguishesPackagesFromTrees(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"trace", "trace", true},
		{"trace", "trace/tracetest", false},
		{"trace", "tracer", false},
		{"model/...", "model", true},
		{"model/...", "model/checkpoint/gguf", true},
		{"model/...", "models", false},
		{"...", "tui", true},
	} {
		if got := match(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

// find returns the first rule that matches a package. Exact names precede patterns.
func find(rules []rule, name string) (rule, bool) {
	for _, r := range rules {
		if r.pkg == name {
			return r, true
		}
	}
	for _, r := range rules {
		if match(r.pkg, name) {
			return r, true
		}
	}
	return rule{}, false
}

// match reports whether a package name matches a pattern.
func match(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	prefix, tree := strings.CutSuffix(pattern, "/...")
	return name == prefix || tree && strings.HasPrefix(name, prefix+"/")
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if match(p, name) {
			return true
		}
	}
	return false
}

// own returns the imports that are packages of this module, relative to the module.
func own(imports []string) []string {
	var names []string
	for _, path := range imports {
		if name, ok := strings.CutPrefix(path, module+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// within reports whether one of the imports is path or below it.
func within(path string, imports []string) bool {
	for _, imported := range imports {
		if imported == path || strings.HasPrefix(imported, path+"/") {
			return true
		}
	}
	return false
}

// list runs go list over patterns, by default the whole module.
func list(t *testing.T, env string, patterns ...string) []pkg {
	t.Helper()
	if len(patterns) == 0 {
		patterns = []string{module + "/..."}
	}
	watch(t)
	decoder := json.NewDecoder(bytes.NewReader(goTool(t, env,
		append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports,CgoFiles"},
			patterns...)...)))
	var pkgs []pkg
	for {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatal("go list:", err)
		}
		pkgs = append(pkgs, p)
	}
}

// watch reads every folder of the module, so that go test does not use a cached result after a file has
// changed. go test tracks what this process reads, but not what go list reads.
func watch(t *testing.T) {
	t.Helper()
	if err := filepath.WalkDir(filepath.Join("..", ".."),
		func(string, fs.DirEntry, error) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func goTool(t *testing.T, env string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &said)
	}
	return out
}

// largest is the maximum number of lines of a package without its tests. A package that grows beyond it is
// split by subject.
const largest = 5000

func TestPackagesStaySmall(t *testing.T) {
	lines := map[string]int{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		lines[filepath.Dir(path)] += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 50 {
		t.Errorf("only %d packages were found", len(lines))
	}
	for dir, n := range lines {
		if n > largest {
			t.Errorf("%s has %d lines without tests, want at most %d: split it", dir, n, largest)
		}
	}
}
