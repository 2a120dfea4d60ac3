package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

// graph lists the content of a file that gpuscope cannot run, together with the reason.
func TestGraphShowsWhatAFileHolds(t *testing.T) {
	t.Parallel()
	b := gguftest.New()
	b.Set("general.architecture", "mamba")
	b.Set("tokenizer.ggml.tokens", make([]string, 100))
	b.Tensor("ssm", gguf.Q4_K, []int{2, 256}, make([]byte, 2*144))
	path := filepath.Join(t.TempDir(), "mamba.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	show := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		args = append([]string{"graph", "--metadata"}, args...)
		status := testProgram(&stdout, &stderr).main(t.Context(), args)
		return status, stdout.String(), stderr.String()
	}
	status, text, stderr := show(path)
	if status != exitDone || stderr != "" {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	for _, want := range []string{
		"2 pairs in the metadata · 1 tensor, 288 B: Q4_K 288 B",
		notSupported + path + ": ",
		`general.architecture   string       "mamba"`, "tokenizer.ggml.tokens  string[100]  [", "(100)]",
		"ssm     Q4_K  2×256    288",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	plain := text
	status, text, stderr = show("--format", "json", path)
	var c contents
	if err := json.Unmarshal([]byte(text), &c); err != nil || status != exitDone {
		t.Fatalf("exit %d: %s: %v", status, stderr, err)
	}
	if len(c.Metadata) != 2 || len(c.Tensors) != 1 || c.Tensors[0].Bytes != 288 ||
		!strings.Contains(c.Refused, "mamba") || !strings.Contains(plain, notSupported+c.Refused+"\n") {
		t.Errorf("got %+v", c)
	}
	_, text, _ = show()
	lines := strings.SplitN(text, "\n", 3)
	if len(lines) < 3 || strings.HasPrefix(lines[1], notSupported) {
		t.Fatalf("embedded model:\n%.300s", text)
	}
	wordingtest.New(t).Text("embedded model", lines[1])
	if status, _, stderr = show("--format", "dot"); status != exitUsage {
		t.Errorf("--format dot: exit %d: %s", status, stderr)
	}
	if status, _, stderr = show(filepath.Join(t.TempDir(), "missing.gguf")); status != exitFailed {
		t.Errorf("a missing file: exit %d: %s", status, stderr)
	}
}

// If tensors have unsupported types, the graph cannot be planned, but the rest of the file is still listed.
func TestGraphMarksTensorsOfUnsupportedTypes(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "models", "quant", "kq-q8_0.gguf"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("needs the shared folder beside the clone: %v", err)
	}
	// In a file, a tensor's name is followed by its number of dims (4 bytes), its dims (8 bytes each) and its
	// type.
	retype := func(name string, dims int, to gguf.Type) {
		at := bytes.Index(data, []byte(name)) + len(name) + 4 + dims*8
		binary.LittleEndian.PutUint32(data[at:], uint32(to))
	}
	const tensor, vector = "blk.0.ffn_down.weight", "blk.1.ffn_norm.weight"
	retype(tensor, 2, gguf.IQ2_XXS)
	retype(vector, 1, gguf.Q4_0) // supported for matrices but not for vectors
	path := filepath.Join(t.TempDir(), "other.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	show := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		status := testProgram(&stdout, &stderr).main(t.Context(), append(args, path))
		return status, stdout.String(), stderr.String()
	}
	status, text, stderr := show("graph")
	for _, want := range []string{
		notSupported + path + ": ",
		"IQ2_XXS  256×512    33792  cannot be planned", "blk.1.ffn_down.weight     Q8_0     256×512   139264\n",
	} {
		if status != exitDone || !strings.Contains(text, want) {
			t.Errorf("exit %d: %s: no %q in\n%s", status, stderr, want, text)
		}
	}
	status, text, _ = show("graph", "--format", "json")
	var c contents
	if err := json.Unmarshal([]byte(text), &c); err != nil || status != exitDone {
		t.Fatalf("exit %d: %v", status, err)
	}
	refused := errors.New(c.Refused)
	if !strings.HasPrefix(c.Refused, path) || !wordingtest.Mentions(refused, tensor+" IQ2_XXS") {
		t.Errorf("the reason is %s", c.Refused)
	}
	for _, entry := range c.Tensors {
		if entry.NotYet != (entry.Name == tensor || entry.Name == vector) {
			t.Errorf("%+v", entry)
		}
	}
	for _, args := range [][]string{{"graph", "--passes"}, {"graph", "--format", "dot"}} {
		if status, text, stderr = show(args...); status != exitFailed || text != "" ||
			!wordingtest.Mentions(errors.New(stderr), tensor+" IQ2_XXS") {
			t.Errorf("%v: exit %d: %s%s", args, status, text, stderr)
		}
	}
}

// graph lists the content of a readable file, whatever is wrong with the model's metadata, and does not fail.
func TestGraphOfAnyReadableFileListsIt(t *testing.T) {
	t.Parallel()
	llama := func(b *gguftest.Builder) {
		b.Set("general.architecture", "llama")
		keys := "block_count feed_forward_length context_length attention.head_count"
		for key := range strings.FieldsSeq(keys) {
			b.Set("llama."+key, 1)
		}
		b.Set("llama.embedding_length", 64)
		b.Set("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	}
	for name, c := range map[string]struct {
		change func(b *gguftest.Builder)
		why    string // names in the reason
	}{
		"empty":                {func(*gguftest.Builder) {}, `"general.architecture"`},
		"another architecture": {func(b *gguftest.Builder) { b.Set("general.architecture", "mamba") }, "architecture mamba"},
		"absurd shape": {
			func(b *gguftest.Builder) { llama(b); b.Set("llama.block_count", uint64(1<<63)) },
			"llama.block_count",
		},
		"vocabulary alone": {llama, `"token_embd.weight"`},
		"no such layers": {
			func(b *gguftest.Builder) {
				llama(b)
				b.F32("token_embd.weight", []int{32, 64}, make([]float32, 2048))
			},
			"is missing",
		},
		"unknown type": {
			func(b *gguftest.Builder) {
				llama(b)
				b.Tensor("token_embd.weight", 99, []int{32, 64}, make([]byte, 99))
			},
			"token_embd.weight type 99;",
		},
		"names that a terminal obeys": {
			func(b *gguftest.Builder) {
				b.Set("general.architecture", "a\x1b[2J\nb"+strings.Repeat("x", 1<<20))
				b.F32(strings.Repeat("x", 1<<15), []int{1}, []float32{1})
			},
			"architecture a",
		},
	} {
		b := gguftest.New()
		c.change(b)
		path := filepath.Join(t.TempDir(), "x.gguf")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		status := testProgram(&stdout, &stderr).main(t.Context(), []string{"graph", "--device", "none", path})
		_, why, said := strings.Cut(stdout.String(), notSupported)
		why, _, _ = strings.Cut(why, "\n")
		if status != exitDone || !said || !wordingtest.Mentions(errors.New(why), c.why) {
			t.Errorf("%s: exit %d: %s: %.300q", name, status, stderr.String(), why)
		}
		clean(t, name, stdout.String())
		for line := range strings.Lines(stdout.String()) {
			if len(line) > 2500 {
				t.Errorf("%s: a line of %d bytes: %.100q", name, len(line), line)
			}
		}
		stdout.Reset()
		status = testProgram(&stdout, &stderr).main(t.Context(), []string{"graph", "--at", "1,0", path})
		if status != exitFailed || stdout.Len() > 0 {
			t.Errorf("%s at a shape: exit %d", name, status)
		}
	}
}

// An ignored metadata key is listed with the reason. It is also a warning if it would change the result.
func TestMetadataListsIgnoredKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "shared", "cases", "llama-window.gguf")
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("needs the shared folder beside the clone: %v", err)
	}
	var stdout, stderr bytes.Buffer
	status := testProgram(&stdout, &stderr).main(t.Context(), []string{"graph", "--metadata", path})
	const want = "\nignored: llama.attention.sliding_window: "
	if status != exitDone || !strings.Contains(stdout.String(), want) {
		t.Errorf("exit %d: %s%.500s", status, &stderr, &stdout)
	}
	stdout.Reset()
	args := []string{"graph", "--metadata", "--format", "json", path}
	status = testProgram(&stdout, &stderr).main(t.Context(), args)
	var c contents
	if err := json.Unmarshal(stdout.Bytes(), &c); err != nil || status != exitDone {
		t.Fatalf("exit %d: %s: %v", status, &stderr, err)
	}
	if len(c.Warnings) != 1 || len(c.Ignored) != 1 || c.Ignored[0].Key != "llama.attention.sliding_window" ||
		c.Ignored[0].Why == "" {
		t.Errorf("warnings %q, ignored %+v", c.Warnings, c.Ignored)
	}
}

// graph lists the tokens that end a text, each with the metadata key that defines it, next to the problems of
// the vocabulary.
func TestGraphListsTheTokensThatEndText(t *testing.T) {
	t.Parallel()
	b := gguftest.New()
	b.Set("general.architecture", "mamba") // an architecture that does not run
	b.ByteTokenizer(260)
	path := filepath.Join(t.TempDir(), "ends.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"graph", "--metadata", "--format", "json", path}
	status := testProgram(&stdout, &stderr).main(t.Context(), args)
	var c contents
	if err := json.Unmarshal(stdout.Bytes(), &c); err != nil || status != exitDone {
		t.Fatalf("exit %d: %s: %v", status, &stderr, err)
	}
	want := []ending{{ID: 0, Text: "<|endoftext|>", From: "tokenizer.ggml.eos_token_id"}}
	if !slices.Equal(c.Ends, want) {
		t.Errorf("got %v, want %v", c.Ends, want)
	}
	stdout.Reset()
	testProgram(&stdout, &stderr).main(t.Context(), []string{"graph", "--metadata", path})
	if !strings.Contains(stdout.String(), "0  <|endoftext|>  tokenizer.ggml.eos_token_id") {
		t.Errorf("the text output has no end tokens:\n%s", &stdout)
	}
}
