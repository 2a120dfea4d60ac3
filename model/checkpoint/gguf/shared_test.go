package gguf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
)

// sharedModels returns the folder with the test models. If the folder is missing, it skips the test, or fails
// it in CI.
func sharedModels(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "models")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test models are missing: %v", err)
		}
		t.Skipf("the test models are missing: %v", err)
	}
	return dir
}

func TestRealFilesParse(t *testing.T) {
	t.Parallel()
	dir := sharedModels(t)
	var paths []string
	for _, pattern := range []string{"*.gguf", "arch/*.gguf", "quant/*.gguf", "tokenizers/*.gguf"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		f, err := gguf.Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		// The tensors of a real file are contiguous, apart from padding. A wrong size of any type would leave
		// a gap or an overlap.
		align := int64(f.Alignment)
		for i, tensor := range f.Tensors() {
			end := (tensor.Offset + int64(tensor.Size()) + align - 1) / align * align
			next := info.Size()
			if i+1 < len(f.Tensors()) {
				next = f.Tensors()[i+1].Offset
			}
			if end != next {
				t.Errorf("%s: %v ends at %d, but the next one or the end is at %d", path, tensor, end, next)
			}
		}
		if _, err := f.String("general.architecture"); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDemoModelIsAsItsReadmeSays(t *testing.T) {
	t.Parallel()
	f, err := gguf.Open(filepath.Join(sharedModels(t), "demo.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key, want := range map[string]any{
		"general.architecture":                   "llama",
		"llama.block_count":                      uint32(6),
		"llama.context_length":                   uint32(1024),
		"llama.embedding_length":                 uint32(384),
		"llama.feed_forward_length":              uint32(1024),
		"llama.attention.head_count":             uint32(6),
		"llama.attention.head_count_kv":          uint32(2),
		"llama.attention.key_length":             uint32(64),
		"llama.attention.layer_norm_rms_epsilon": float32(1e-5),
		"tokenizer.ggml.pre":                     "gpt-2",
		"tokenizer.ggml.add_bos_token":           true,
	} {
		v, ok := f.Value(key)
		if diff := cmp.Diff(want, v.Any()); !ok || diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	tokens, err := f.Strings("tokenizer.ggml.tokens")
	if err != nil || len(tokens) != 4096 || tokens[0] != "<|endoftext|>" || tokens[1] != "!" {
		t.Errorf("%d tokens, %v", len(tokens), err)
	}
	if len(f.Tensors()) != 56 {
		t.Errorf("%d tensors, want 56", len(f.Tensors()))
	}
	for name, want := range map[string]string{
		"token_embd.weight":     "token_embd.weight Q4_0 [4096, 384]",
		"output_norm.weight":    "output_norm.weight F32 [384]",
		"blk.5.attn_k.weight":   "blk.5.attn_k.weight Q4_0 [128, 384]",
		"blk.0.ffn_down.weight": "blk.0.ffn_down.weight Q4_0 [384, 1024]",
	} {
		tensor, err := f.Tensor(name)
		if err != nil {
			t.Error(err)
		} else if tensor.String() != want {
			t.Errorf("got %v, want %s", tensor, want)
		}
	}
}

func TestTruncatedDemoModelIsAnError(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(sharedModels(t), "demo.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	step := 1000
	if testing.Short() {
		step *= 20 // parsing uses one goroutine, so the race detector has nothing to check
	}
	for n := 0; n < len(data); n += step {
		_, err := gguf.Parse(data[:n:n], "demo.gguf")
		if err == nil {
			t.Fatalf("the first %d of %d bytes parse", n, len(data))
		}
		if text := err.Error(); strings.Contains(text, "\n") || len(text) > 300 {
			t.Fatalf("cut at %d: %s", n, text)
		}
	}
}

// TestTypesThatCannotBeReadAreNamed checks that a model with an unsupported type opens, and that reading its
// values returns an error that names the type.
func TestTypesThatCannotBeReadAreNamed(t *testing.T) {
	t.Parallel()
	f, err := gguf.Open(filepath.Join(sharedModels(t), "quant", "kq-q6_k.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensor, err := f.Tensor("blk.0.attn_q.weight")
	if err != nil {
		t.Fatal(err)
	}
	_, err = gguf.Dequantize(tensor)
	if !wordingtest.Mentions(err, `"blk.0.attn_q.weight" Q6_K Q4_0`) {
		t.Errorf("got %v", err)
	}
}

// TestQuantisedFilesHoldTheSameModel compares one tensor in several types with its f16 version. The error
// must be about one quantization step. A wrong element order would give a far larger error.
func TestQuantisedFilesHoldTheSameModel(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(sharedModels(t), "quant")
	read := func(file string) []float32 {
		f, err := gguf.Open(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		tensor, err := f.Tensor("blk.1.ffn_up.weight")
		if err != nil {
			t.Fatal(err)
		}
		values, err := gguf.Dequantize(tensor)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	exact := read("kq-f16.gguf")
	for file, limit := range map[string]float64{"kq-bf16.gguf": 1e-5, "kq-q4_0.gguf": 0.01} {
		var gap, power float64
		for i, v := range read(file) {
			d := float64(v) - float64(exact[i])
			gap += d * d
			power += float64(exact[i]) * float64(exact[i])
		}
		if ratio := gap / power; ratio > limit || ratio == 0 {
			t.Errorf("%s: squared error / power is %g, want above 0 and at most %g", file, ratio, limit)
		}
	}
}
