package pte_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/model/checkpoint/pte"
)

// sharedPrograms returns the folder with programs exported by ExecuTorch. If the folder is missing, it skips
// the test, or fails it in CI.
func sharedPrograms(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "pte")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test programs are missing: %v", err)
		}
		t.Skipf("the test programs are missing: %v", err)
	}
	return dir
}

func realFiles(t testing.TB) []string {
	t.Helper()
	dir := sharedPrograms(t)
	var paths []string
	for _, pattern := range []string{"dynamic/*.pte", "ops/*.pte", "*.pte"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		paths = append(paths, found...)
	}
	return paths
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The manifests list the inputs, outputs and portable operators of each program.
func TestRealFilesAreWhatTheirManifestsSay(t *testing.T) {
	t.Parallel()
	dir := sharedPrograms(t)
	for _, folder := range []string{"dynamic", "ops"} {
		var manifest struct {
			Cases []struct {
				PTE      string
				Portable []string `json:"portable_ops"`
				Runs     []struct {
					Inputs  []string
					Outputs []struct{ Index int }
				}
			}
		}
		err := json.Unmarshal(readFile(t, filepath.Join(dir, folder, "manifest.json")), &manifest)
		if err != nil || len(manifest.Cases) == 0 {
			t.Fatalf("%s: %d cases, %v", folder, len(manifest.Cases), err)
		}
		for _, c := range manifest.Cases {
			f, err := pte.Open(filepath.Join(dir, folder, c.PTE))
			if err != nil {
				t.Error(err)
				continue
			}
			m, err := f.Method("forward")
			if err != nil {
				t.Error(err)
				continue
			}
			for _, run := range c.Runs {
				if len(run.Inputs) != len(m.Inputs) {
					t.Errorf("%s: %d inputs, want %d", c.PTE, len(m.Inputs), len(run.Inputs))
				}
				for _, out := range run.Outputs {
					if out.Index >= len(m.Outputs) {
						t.Errorf("%s: output %d of %d", c.PTE, out.Index, len(m.Outputs))
					}
				}
			}
			var portable []string
			for _, in := range m.Chains[0].Instructions {
				if in.Op == pte.KernelCall {
					portable = append(portable, m.Operators[in.Target].String())
				}
			}
			for i := range c.Portable { // the manifest writes a trailing dot if there is no overload
				c.Portable[i] = strings.TrimSuffix(c.Portable[i], ".")
			}
			if !slices.Equal(portable, c.Portable) {
				t.Errorf("%s: portable operators %q, want %q", c.PTE, portable, c.Portable)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRealModelsHaveTheirConstantMethods(t *testing.T) {
	t.Parallel()
	f, err := pte.Open(filepath.Join(sharedPrograms(t), "llama-demo-4w.pte"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]pte.Value{
		"get_max_seq_len": int64(128), "get_max_context_len": int64(256), "get_vocab_size": int64(4096),
		"use_kv_cache": true,
	} {
		m, err := f.Method(name)
		if err != nil || !m.Constant() || m.Values[m.Outputs[0]] != want {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	m, err := f.Method("forward")
	if err != nil {
		t.Fatal(err)
	}
	tokens := m.Values[m.Inputs[0]].(*pte.Tensor)
	if tokens.Type != pte.Int64 || !slices.Equal(tokens.Sizes, []int{1, 127}) ||
		tokens.Dynamism != pte.Bounded {
		t.Errorf("tokens %+v", tokens)
	}
}
