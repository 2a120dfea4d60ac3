package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/printable"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/model/source"
	"gpuscope/session"
	"gpuscope/text/tokenizer"
)

// hostileValues are metadata values that a damaged or malicious file may have. hostileTexts are token texts,
// and hostileDims are dims of such a file.
var (
	hostileValues = []any{
		0, 1, -1, 2, 3, 4, 7, 31, 32, 33, 63, 64, 65, 96, 128, 255, 256, 257, 258, 1 << 10, 1 << 16, 1 << 20,
		1 << 24, uint32(math.MaxUint32), uint32(1 << 31), int32(math.MinInt32), uint64(math.MaxUint64),
		uint64(1 << 63), int64(math.MinInt64), uint8(255), int8(-128), float32(0), float32(1), float32(-1),
		float32(1e-30), float32(1e30), float32(math.NaN()), float32(math.Inf(1)), math.Inf(-1),
		math.MaxFloat64, true, false, "", "llama", "gpt2", "bert", "none", "linear", "\x1b]52;c;eA==\a",
		strings.Repeat("x", 100_000), "\xff\xfe",
		[]string{},
		[]string{""},
		[]string{"a", "a"},
		[]int{},
		[]int{-1, 1 << 30},
		[]float32{},
		[]bool{true},
		[][]string{{"a"}, {}},
		[]int32{1, 2, 3},
		[]string{" ", "a b", "a  b", "b a"},
		[]string{strings.Repeat("y", 50_000), strings.Repeat("z", 50_000)},
	}
	hostileTexts = []string{
		"", " ", "\xff", "\xed\xa0\x80", "a", "ab", "\u0120", "\u202e", "\x00", "<|end|>", "<0x0A>", "\n",
		"é", "日本", "\x1b[2J", strings.Repeat("z", 3000),
	}
	hostileDims = []int{0, 1, 31, 32, 33, 64, 256, 1 << 20, 1 << 40, math.MaxInt}
)

// among returns a random element of a list.
func among[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// hostileModel returns the tiny model with random damage to metadata, vocabulary, tensors or single bytes.
func hostileModel(r *rand.Rand) []byte {
	a := among(r, ggufArchitectures())
	b := tinyOf(a)
	keys := append(b.Keys(), "general.alignment", "tokenizer.ggml.unknown_token_id",
		"tokenizer.ggml.eot_token_id", "tokenizer.ggml.scores", "tokenizer.ggml.add_eos_token",
		"tokenizer.ggml.add_space_prefix")
	for _, key := range a.Gguf.Keys.List() {
		keys = append(keys, a.Name+"."+key)
	}
	for _, o := range a.Gguf.Only {
		keys = append(keys, a.Name+"."+o.Key)
	}
	for range 1 + r.IntN(3) {
		switch r.IntN(6) {
		case 0, 1, 2:
			b.Set(among(r, keys), among(r, hostileValues))
		case 3:
			b.Remove(among(r, keys))
		case 4:
			b.Reshape(r.IntN(b.Tensors()), func(dims []int) []int {
				if r.IntN(4) == 0 {
					return append(dims, 1)
				}
				dims[r.IntN(len(dims))] = among(r, hostileDims)
				return dims
			}, gguf.Type(r.IntN(45)))
		case 5:
			hostileVocabulary(b, r)
		}
	}
	data := b.Bytes()
	if r.IntN(3) == 0 {
		for range 1 + r.IntN(4) {
			data[r.IntN(len(data))] = byte(r.Uint32())
		}
	}
	return data
}

func hostileVocabulary(b *gguftest.Builder, r *rand.Rand) {
	tokens, kinds := make([]string, tinyVocab), make([]int32, tinyVocab)
	for i := range tokens {
		tokens[i], kinds[i] = fmt.Sprint("t", i), int32(r.IntN(8))
		switch {
		case r.IntN(3) > 0 && i < 256:
			tokens[i] = tokenizer.ByteText(byte(i))
		case r.IntN(3) == 0:
			tokens[i] = among(r, hostileTexts)
		}
		if r.IntN(9) == 0 {
			kinds[i] = int32(r.Uint32())
		}
	}
	var merges []string
	for range r.IntN(300) {
		between := " "
		if r.IntN(40) == 0 {
			between = among(r, hostileTexts)
		}
		merges = append(merges, among(r, tokens)+between+among(r, tokens))
	}
	rule := among(r, []string{"gpt-2", "llama-bpe", "qwen2", "smollm", "default", "x"})
	b.Tokenizer(rule, tokens, kinds, merges)
	b.Set("tokenizer.ggml.model", among(r, []string{"gpt2", "gpt2", "gpt2", "llama", "bert"}))
}

// useHostile reads a file, plans it and runs it. It checks that each error or warning is one short line.
func useHostile(t *testing.T, data []byte) error {
	err := func() error {
		f, err := arch.ParseGGUF(data, "hostile.gguf")
		if err != nil {
			return err
		}
		m := &Model{file: source.OfCheckpoint(f, nil), options: Options{TopLogits: 3, MaxChunk: 4}}
		if err := m.read(); err != nil {
			return err
		}
		m.Info()
		for id := range m.sizes.Vocab {
			m.tokens.Bytes(id)
		}
		for _, w := range m.Warnings() {
			holdLine(t, errors.New(w))
		}
		for _, text := range hostileTexts {
			if _, err := m.prompt(session.Command{Text: "x" + text + " <|end|> 1"}); err != nil {
				holdLine(t, err)
			}
		}
		if _, err := m.Plan(gpu.DefaultLimits()); err != nil {
			return err
		}
		dev := fake.New(fake.Options{NoLog: true})
		defer dev.Release()
		silent := func(string, int, int) error { return nil }
		n, err := m.graphFor(dev.Info().Limits, silent, func(string) {})
		if err != nil {
			return err
		}
		r, err := m.load(dev, n, silent, func(string) {})
		if err != nil {
			return err
		}
		defer r.Exec.Release()
		_, err = r.Step(t.Context(), 0, make([]int, m.maxChunk), true, nil, 0)
		return err
	}()
	if err != nil {
		holdLine(t, err)
	}
	return err
}

func holdLine(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if n := utf8.RuneCountInString(text); n > 400 || printable.Clean(text) != text {
		t.Errorf("an error of %d characters: %.300q", n, text)
	}
}

func TestHostileModelsEndInOneShortLine(t *testing.T) {
	models, ran := 300, 0
	if testing.Short() {
		models /= 5
	}
	for i := range models {
		data := hostileModel(rand.New(rand.NewPCG(7, uint64(i))))
		start := time.Now()
		if useHostile(t, data) == nil {
			ran++
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("model %d took %v", i, took)
		}
	}
	t.Logf("%d of %d ran", ran, models)
	if ran == 0 {
		t.Error("no model ran: the damage is too heavy to test anything after the parser")
	}
}

func FuzzModel(f *testing.F) {
	f.Add(tiny().Bytes())
	for i := range 20 {
		f.Add(hostileModel(rand.New(rand.NewPCG(8, uint64(i)))))
	}
	f.Fuzz(func(t *testing.T, data []byte) { _ = useHostile(t, data) })
}

// A file can claim to be larger than any memory and have holes in place of its weights.
func TestMatrixWithoutEndIsRefusedAtOnce(t *testing.T) {
	golden := wordingtest.New(t)
	b := tiny()
	b.Remove("tokenizer.ggml.model")
	b.Set("llama.embedding_length", arch.MaxDim)
	b.Set("llama.attention.key_length", tinyHeadDim)
	path := write(t, b.Sparse("token_embd.weight", []int{arch.MaxVocab, arch.MaxDim}))
	if err := os.Truncate(path, 11<<40); err != nil {
		t.Skipf("cannot create a sparse file of this size: %v", err)
	}
	start := time.Now()
	m, err := Read(Options{Path: path})
	if err == nil {
		_, err = m.Plan(gpu.DefaultLimits())
		_ = m.Close()
	}
	golden.Text("a table of 9 TB", inFolder(err, filepath.Dir(path)))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
