package shaders

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/internal/wordingtest"
)

var dump = flag.String("dump", "", "write the expansion of every variant to a folder")

// manifest has a line for each template variant that the tests expand. The variant's name and constants are
// written by hand; -update fills in the rest.
const manifest = "testdata/variants.jsonl"

// variant is a line of the manifest.
type variant struct {
	Name      string          `json:"variant"` // TEMPLATE/CASE
	Given     json.RawMessage `json:"constants"`
	Bindings  string          `json:"bindings"`  // storage buffers by number, and how each is used
	Params    string          `json:"params"`    // fields of the params block
	Workgroup [3]int          `json:"workgroup"` // workgroup size
	Memory    uint64          `json:"memory"`    // workgroup memory in bytes
	SHA256    string          `json:"sha256"`    // of the expansion
	// Compiled is the SHA256 of the expansion that last compiled on the CPU adapter.
	Compiled string `json:"compiled"`
}

func (v *variant) template() string {
	template, _, _ := strings.Cut(v.Name, "/")
	return template
}

// golden returns the file of the expansion. A few variants have one, as examples to read.
func (v *variant) golden() string {
	return filepath.Join("testdata", filepath.FromSlash(v.Name)+".wgsl")
}

// textConstants are the constants that hold WGSL.
var textConstants = []string{"Expr", "Needs", "Join", "Start"}

func (v *variant) constants(t testing.TB) Constants {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(v.Given))
	d.UseNumber()
	c := Constants{}
	if err := d.Decode(&c); err != nil {
		t.Fatalf("%s: %s: %v", manifest, v.Name, err)
	}
	for key, value := range c {
		if slices.Contains(textConstants, key) {
			c[key] = Text(value.(string))
		}
		if n, ok := value.(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				c[key] = int(i)
			} else if f, err := strconv.ParseFloat(n.String(), 32); err == nil {
				c[key] = float32(f)
			} else {
				t.Fatalf("%s: %s: %s: %v", manifest, v.Name, key, err)
			}
		}
	}
	return c
}

func (v *variant) expand(t testing.TB) Kernel {
	t.Helper()
	k, err := Expand(v.template(), v.constants(t))
	if err != nil {
		t.Fatalf("%s: %s: %v", manifest, v.Name, err)
	}
	return k
}

// described returns the variant with the data that its expansion declares.
func (v variant) described(t testing.TB, k Kernel) variant {
	t.Helper()
	var bindings, params []string
	for _, s := range k.Storage {
		bindings = append(bindings, s.Name+map[[2]bool]string{
			{true, true}: " (read and written)", {false, true}: " (written)",
		}[[2]bool{s.Read, s.Write}])
	}
	for _, p := range k.Params {
		params = append(params, p.Type+" "+p.Name)
	}
	memory, ok := gpu.WorkgroupBytes(k.Source)
	if !ok {
		t.Errorf("%s declares workgroup memory of unknown size", v.Name)
	}
	sum := sha256.Sum256([]byte(k.Source))
	v.Bindings, v.Params = strings.Join(bindings, ", "), strings.Join(params, ", ")
	v.Workgroup, v.Memory, v.SHA256 = k.WorkgroupSize, memory, hex.EncodeToString(sum[:])
	return v
}

// text returns the expansion as its file shows it.
func (v *variant) text(k Kernel) string {
	return fmt.Sprintf("// %s: %s\n// workgroup %v, %d bytes of workgroup memory\n"+
		"// bindings: %s\n// params: %s\n\n%s",
		v.Name, k.Constants, v.Workgroup, v.Memory, v.Bindings, v.Params, k.Source)
}

func readVariants(t testing.TB) []variant {
	t.Helper()
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var list []variant
	for line := range bytes.Lines(data) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		var v variant
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s, line %d: %v", manifest, len(list)+1, err)
		}
		list = append(list, v)
	}
	return list
}

func variantNamed(t testing.TB, name string) *variant {
	t.Helper()
	list := readVariants(t)
	i := slices.IndexFunc(list, func(v variant) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("%s has no variant %s", manifest, name)
	}
	return &list[i]
}

func writeVariants(t testing.TB, list []variant) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := range list {
		if err := e.Encode(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(manifest, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Each variant expands to what its manifest line says; -update rewrites the lines that changed. With -dump
// DIR the expansions are written to DIR, to compare them with those of another commit.
func TestExpandGivesWhatTheManifestSays(t *testing.T) {
	list := readVariants(t)
	seen := map[string]bool{}
	for i := range list {
		v := &list[i]
		t.Run(v.Name, func(t *testing.T) {
			if seen[v.Name] {
				t.Errorf("two variants have this name")
			}
			seen[v.Name], seen[v.template()] = true, true
			k := v.expand(t)
			holdUsed(t, k.Source)
			got := v.described(t, k)
			if wordingtest.Updating() {
				*v = got
			} else if d := cmp.Diff(*v, got); d != "" {
				t.Errorf("%s differs (- expected, + got); -update rewrites it, -dump DIR writes the sources\n%s",
					manifest, d)
			}
			holdGolden(t, v, k)
			if *dump != "" {
				file := filepath.Join(*dump, filepath.FromSlash(v.Name)+".wgsl")
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(v.text(k)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	for _, name := range Names() {
		if !seen[name] {
			t.Errorf("%s.wgsl has no variant in %s: add a line with its constants and run with -update", name,
				manifest)
		}
	}
	if wordingtest.Updating() && !t.Failed() {
		writeVariants(t, list)
	}
}

// holdGolden compares an expansion with its file, if the variant has one.
func holdGolden(t *testing.T, v *variant, k Kernel) {
	t.Helper()
	want, err := os.ReadFile(v.golden())
	if os.IsNotExist(err) {
		return
	}
	got := v.text(k)
	switch {
	case err != nil:
		t.Fatal(err)
	case wordingtest.Updating():
		err = os.WriteFile(v.golden(), []byte(got), 0o644)
	default:
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("expansion differs from %s (- expected, + got); -update rewrites it\n%s", v.golden(), d)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every golden file belongs to a variant, so that no stale file remains.
func TestGoldensBelongToVariants(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.wgsl")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, v := range readVariants(t) {
		known[v.golden()] = true
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s: %s has no variant of that name", f, manifest)
		}
	}
}

// Each variant compiles on an adapter. An expansion is compiled only once: -update records in the manifest
// that it compiled, and a line whose expansion changed is compiled again.
func TestVariantsCompile(t *testing.T) {
	list := readVariants(t)
	var dev gpu.Device
	for i := range list {
		v := &list[i]
		if v.Compiled == v.SHA256 {
			continue
		}
		if dev == nil {
			dev = gputest.Open(t)
		}
		if err := compiles(dev, v.expand(t), v.Name); err != nil {
			t.Errorf("%s does not compile: %v", v.Name, err)
			continue
		}
		if v.Compiled = v.SHA256; !wordingtest.Updating() {
			t.Errorf("%s compiles, but %s does not record it: run with -update", v.Name, manifest)
		}
	}
	if wordingtest.Updating() && dev != nil {
		writeVariants(t, list)
	}
}

func compiles(dev gpu.Device, k Kernel, label string) error {
	var bindings []gpu.Access
	for _, s := range k.Storage {
		access := gpu.Read
		if s.Write {
			access = gpu.ReadWrite
		}
		bindings = append(bindings, access)
	}
	if len(k.Params) > 0 {
		bindings = append(bindings, gpu.Params)
	}
	p, err := dev.NewPipeline(gpu.PipelineDesc{Label: label, Source: k.Source, Bindings: bindings})
	if err == nil {
		p.Release()
	}
	return err
}
