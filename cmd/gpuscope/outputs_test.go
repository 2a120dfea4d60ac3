package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
)

// contentsOf returns the contents of all files of a folder, by name.
func contentsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil && !e.IsDir() {
			t.Fatal(err)
		}
		all[e.Name()] = string(content)
	}
	return all
}

// No command overwrites a file that it reads, whatever name the file is given by.
func TestNoCommandOverwritesItsInput(t *testing.T) {
	profile, err := filepath.Abs(tinyProfile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	in := programFolder{t, dir}
	write := func(name string) {
		if err := trace.WriteFile(name, tracetest.Llama(1, 3)); err != nil {
			t.Fatal(err)
		}
	}
	write("a.json")
	write("b.json")
	in.write("p.json", text)
	in.write("model", []byte("GGUF"))
	in.write("words.json", []byte("{}"))
	in.write("add.pte", ptetest.Adder().Bytes())
	in.write("out1.npy", floatArray(1).Bytes())
	for _, err := range []error{
		os.Link("a.json", "hard.json"), os.Symlink("a.json", "soft.json"),
		os.Mkdir("hf", 0o755), os.WriteFile("hf/config.json", []byte("{}"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before, config := contentsOf(t, dir), contentsOf(t, "hf")
	for _, line := range []string{
		"trace report a.json -o a.json", "trace report a.json -o ./a.json",
		"trace report a.json -o hard.json",
		"trace report a.json -o soft.json", "trace report soft.json -o a.json",
		"trace report a.json b.json -o b.json", "trace report a.json -o " + filepath.Join(dir, "a.json"),
		"trace convert a.json --to csv -o a.json", "trace convert a.json hard.json",
		"trace convert a.json --to parquet -o .", "trace convert a.json a.json",
		"trace diff a.json b.json -o a.json", "trace diff a.json b.json -o b.json",
		"trace import p.json -o p.json", "trace import p.json --model model -o model",
		"trace import p.json --model hf -o hf/config.json", "trace import p.json --model a --data model -o model",
		"run model --trace model", "run hf --trace hf/config.json",
		"run model --tokenizer words.json --trace words.json",
		"run add.pte --input out1.npy --input out1.npy --output-dir .", "verify model --trace model",
		"verify hf --tokenizer words.json --trace ./words.json",
	} {
		status, stdout, stderr := called(t, strings.Fields(line)...)
		if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q", line, status, stdout, stderr)
		}
	}
	if after := contentsOf(t, dir); !maps.Equal(after, before) || !maps.Equal(contentsOf(t, "hf"), config) {
		t.Errorf("files were changed: %d, then %d files", len(before), len(after))
	}
}
