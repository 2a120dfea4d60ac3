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

// rule says what a package may import. Names are relative to the module; "model/..." stands for the package and all below it.
// Imports point downwards only: the table is in the order of docs/architecture.md.
type rule struct {
	pkg  string
	may  []string // packages of this module
	test []string // more of them, in tests alone
}

// support is what tests everywhere may import.
var support = []string{"engine/gpu/fake", "engine/gpu/gputest", "model/gguf/gguftest", "trace/tracetest"}

var rules = []rule{
	{pkg: "cmd/gpuscope", may: []string{"..."}},
	{pkg: "tui/...", may: []string{"tui/...", "model/session", "trace"}},
	{pkg: "model/session", may: []string{"trace"}},
	{pkg: "model/gguf", may: nil},
	{pkg: "model/safetensors", may: nil},
	{pkg: "model/pte", may: nil},
	{pkg: "model/tokenizer", may: []string{"model/gguf"}},
	{pkg: "model/...", may: []string{"model/...", "ops/...", "engine", "engine/gpu", "trace"}, test: []string{"engine/gpu/rules"}},
	{pkg: "ops/...", may: []string{"ops/...", "shaders", "engine", "engine/gpu", "trace"}},
	{pkg: "shaders", may: nil},
	{pkg: "engine", may: []string{"engine/gpu", "trace"}, test: []string{"engine/gpu/rules"}},
	{pkg: "engine/gpu", may: nil},
	{pkg: "engine/gpu/rules", may: []string{"engine/gpu"}},
	{pkg: "engine/gpu/wgpu", may: []string{"engine/gpu", "engine/gpu/rules"}},
	{pkg: "engine/gpu/fake", may: []string{"engine/gpu", "engine/gpu/rules"}},
	{pkg: "engine/gpu/gputest", may: []string{"engine/gpu", "engine/gpu/wgpu"}, test: []string{"engine/gpu/rules"}},
	{pkg: "trace", may: nil},
	{pkg: "trace/tracetest", may: []string{"trace"}},
	{pkg: "internal/...", may: nil},
}

// outside says which packages alone may import a module of others, tests included.
var outside = []struct {
	path string
	may  []string
}{
	{"github.com/charmbracelet/bubbletea", []string{"tui/..."}},
	{"github.com/charmbracelet/lipgloss", []string{"tui/..."}},
	{"github.com/charmbracelet/bubbles", []string{"tui/..."}},
	{"github.com/cogentcore/webgpu", []string{"engine/gpu/wgpu"}},
	{"github.com/spf13/pflag", []string{"cmd/gpuscope"}},
}

// testsOnly are modules that no program may contain.
var testsOnly = []string{
	"testing", "pgregory.net/rapid", "github.com/google/go-cmp", "github.com/creack/pty", "github.com/santhosh-tekuri/jsonschema",
	"github.com/charmbracelet/x/vt", "github.com/charmbracelet/x/exp/golden", "github.com/dlclark/regexp2",
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath                                   string
	Imports, TestImports, XTestImports, CgoFiles []string
}

func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func TestPackagesImportOnlyWhatTheirRuleAllows(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "CGO_ENABLED=1") {
		r, ok := find(p.name())
		if !ok {
			t.Errorf("%s is in no line of the import table: add one", p.name())
			continue
		}
		for _, imported := range own(p.Imports) {
			if !matchAny(r.may, imported) {
				t.Errorf("%s imports %s; it may import %q", p.name(), imported, r.may)
			}
		}
		for _, imported := range own(append(p.TestImports, p.XTestImports...)) {
			// A test may import its own package, and the ones its package may.
			if imported != p.name() && !matchAny(r.may, imported) && !matchAny(r.test, imported) && !matchAny(support, imported) {
				t.Errorf("a test of %s imports %s; it may import %q", p.name(), imported, append(r.may, append(r.test, support...)...))
			}
		}
	}
}

func TestTheBindingAndTheTerminalStayBehindTheirPackages(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "CGO_ENABLED=1") {
		all := append(append(p.Imports, p.TestImports...), p.XTestImports...)
		for _, o := range outside {
			if !matchAny(o.may, p.name()) && within(o.path, all) {
				t.Errorf("%s imports %s, which is for %q alone", p.name(), o.path, o.may)
			}
		}
	}
}

func TestTestSupportStaysInTests(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "CGO_ENABLED=1") {
		if matchAny(support, p.name()) {
			continue
		}
		for _, path := range testsOnly {
			if within(path, p.Imports) {
				t.Errorf("%s imports %s outside of its tests", p.name(), path)
			}
		}
	}
}

// Without cgo there is no WebGPU: then the program has no adapter, and all of it still builds.
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

func TestMatchTellsAPackageFromATree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"trace", "trace", true},
		{"trace", "trace/tracetest", false},
		{"trace", "tracer", false},
		{"model/...", "model", true},
		{"model/...", "model/gguf", true},
		{"model/...", "models", false},
		{"...", "tui", true},
	} {
		if got := match(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

// find is the first rule that matches a package, the exact ones before the patterns.
func find(name string) (rule, bool) {
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

// match says whether a package name is a pattern's.
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

// own are the imports that are packages of this module, by their names in it.
func own(imports []string) []string {
	var names []string
	for _, path := range imports {
		if name, ok := strings.CutPrefix(path, module+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// within says whether one of the imports is path or below it.
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
	decoder := json.NewDecoder(bytes.NewReader(goTool(t, env, append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports,CgoFiles"}, patterns...)...)))
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

// watch looks at every folder of the module, so that go test does not take a cached result when a file has changed: it
// knows what this process reads, not what go list does.
func watch(t *testing.T) {
	t.Helper()
	if err := filepath.WalkDir(filepath.Join("..", ".."), func(string, fs.DirEntry, error) error { return nil }); err != nil {
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
