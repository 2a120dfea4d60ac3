package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/internal/readjson"
	"gpuscope/internal/wordingtest"
)

// tokenized runs gpuscope tokenize with the given standard input.
func tokenized(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	p := testProgram(&out, &err)
	p.Stdin = strings.NewReader(stdin)
	status = p.main(t.Context(), append([]string{"tokenize"}, args...))
	return status, out.String(), err.String()
}

// Compares --jsonl with the golden ids in both directions, and checks that -p gives the same ids.
func TestTokenizeGivesTheGoldenIDs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "shared", "models", "tokenizers")
	for file, golden := range map[string]string{
		"llama-spm.tokenizer.model": "llama-spm", "qwen2.tokenizer.json": "qwen2", "gpt-2.gguf": "gpt-2",
	} {
		data, err := os.ReadFile(filepath.Join(dir, golden+".golden.json"))
		if err != nil && os.Getenv("CI") != "true" {
			t.Skipf("the test models are missing: %v", err)
		}
		var cases []struct {
			Text  *string
			Bytes string `json:"bytes_base64"`
			IDs   []int
		}
		if err := json.Unmarshal(data, &cases); err != nil {
			t.Fatal(err)
		}
		var texts, want strings.Builder
		for _, c := range cases {
			raw, _ := base64.StdEncoding.DecodeString(c.Bytes)
			text := string(raw)
			if c.Text != nil {
				text = *c.Text
			}
			if utf8.ValidString(text) || golden == "llama-spm" {
				fmt.Fprintf(&texts, "%s\n", readjson.QuoteBytes(text))
				ids, _ := json.Marshal(append([]int{}, c.IDs...))
				want.WriteString(strings.ReplaceAll(string(ids), ",", ", ") + "\n")
			}
		}
		path := filepath.Join(dir, file)
		status, ids, stderr := tokenized(t, texts.String(), "--jsonl", path)
		if diff := cmp.Diff(want.String(), ids); status != 0 || diff != "" {
			t.Errorf("%s: exit %d %s\n%s", file, status, stderr, diff)
		}
		status, back, stderr := tokenized(t, ids, "--jsonl", "--decode", path)
		if diff := cmp.Diff(texts.String(), back); status != 0 || diff != "" {
			t.Errorf("%s: exit %d %s\n%s", file, status, stderr, diff)
		}
	}
}

func TestTokenizeReadsItsInputByTheLine(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	for name, c := range map[string]struct {
		stdin  string
		args   []string
		status int
		stdout string
		stderr string
	}{
		"plain text": {"Hi\xff", []string{"--format", "csv"}, 0, "key,depth,n,id,token,text,kind\n0,0,0,40,H,\"\"\"H\"\"\",", ""},
		"last line":  {`"a"`, []string{"--jsonl"}, 0, "[65]\n", ""},
		"CRLF":       {"\"a\"\r\n", []string{"--jsonl"}, 0, "[65]\n", ""},
		"BOS":        {`"a"`, []string{"--jsonl", "--bos"}, 0, "[0, 65]\n", ""},
		"bytes":      {"\"\xff\"\n\"\\udcff\"\n", []string{"--jsonl"}, 0, "[188]\n[188]\n", ""},
		"special":    {`"<|endoftext|>"`, []string{"--jsonl"}, 0, "[0]\n", ""},
		"as letters": {`"<|endoftext|>"`, []string{"--jsonl", "--special=false"}, 0, "[863, 866, 864]", ""},
		"no JSON": {
			"\"a\"\nb\n",
			[]string{"--jsonl"},
			1, "[65]\n",
			"line 2: ",
		},
		"empty line":    {"\n", []string{"--jsonl"}, 1, "", "line 1: "},
		"two forms":     {`"a"`, []string{"--jsonl", "--format", "csv"}, 2, "", "--format applies"},
		"text as csv":   {"65", []string{"--decode", "--format", "csv"}, 2, "", "--decode always"},
		"ids":           {"[65, 66]", []string{"--jsonl", "--decode"}, 0, "\"ab\"\n", ""},
		"no ids":        {"[65, 1.5]", []string{"--jsonl", "--decode"}, 1, "", "line 1: "},
		"plain ids":     {"0 65,66\n", []string{"--decode"}, 0, "<|endoftext|>ab\n", ""},
		"without names": {"0 65", []string{"--decode", "--special=false"}, 0, "a\n", ""},
		"words as ids":  {"65 b", []string{"--decode"}, 2, "", `--decode: "b"`},
		"no vocabulary": {"", []string{"testdata/graph.txt"}, 1, "", "not a vocabulary"},
		"no such file":  {"", []string{"testdata/none.json"}, 1, "", "testdata/none.json: no such file"},
	} {
		status, stdout, stderr := tokenized(t, c.stdin, c.args...)
		if status != c.status || !strings.HasPrefix(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit %d, %q, %q", name, status, stdout, stderr)
		}
		if c.stderr != "" {
			golden.Text(name, stderr)
		} else if stderr != "" {
			t.Errorf("%s: %s", name, stderr)
		}
	}
}

func TestInvalidUTF8SurvivesJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		if got, err := readjson.UnquoteBytes(readjson.QuoteBytes(text)); err != nil || got != text {
			t.Fatalf("%q comes back as %q, %v", text, got, err)
		}
	})
	for quoted, want := range map[string]string{
		` "\u00e9\ud83d\ude42\/\b\f\n\r\t\"\\" `: "é🙂/\b\f\n\r\t\"\\",
		`"\ud83d\udc80"`:                         "💀",
		`"\udc80\udcff\udc7f\ud83d"`:             "\x80\xff\ufffd\ufffd",
		`"\ud83dA"`:                              "\ufffdA",
	} {
		if got, err := readjson.UnquoteBytes([]byte(quoted)); err != nil || got != want {
			t.Errorf("%s is %q, %v", quoted, got, err)
		}
	}
	for _, wrong := range []string{"", " ", `"`, `"\x"`, `"\u12"`, `1`, `["a"]`, `"a" "b"`, "\"\n\""} {
		if got, err := readjson.UnquoteBytes([]byte(wrong)); err == nil {
			t.Errorf("%q is accepted as %q", wrong, got)
		}
	}
}

// An id outside the vocabulary is named in the error, with the size of the vocabulary. Text that is not an id
// is a usage error.
func TestIDsOutsideTheVocabularyAreRefused(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	for _, c := range []struct {
		args, stdin string
		status      int
	}{
		{"--decode -p 5,4096", "", exitFailed},
		{"--decode -p -3", "", exitFailed},
		{"--decode -p 99999999999999999999", "", exitFailed},
		{"--decode -p 5,x", "", exitUsage},
		{"--decode -p 5,4095", "", exitDone},
		{"--decode --jsonl", "[5]\n[5, 4096]\n", exitFailed},
		{"--decode --jsonl", "[5, \"a\"]\n", exitFailed},
		{"--decode --jsonl", "[5, 1\n", exitFailed},
		{"--decode --jsonl", "\n", exitFailed},
	} {
		status, _, stderr := tokenized(t, c.stdin, strings.Fields(c.args)...)
		if status != c.status || (status == exitDone) != (stderr == "") {
			t.Errorf("%s of %q: exit %d, %q, want %d", c.args, c.stdin, status, stderr, c.status)
		}
		if stderr != "" {
			golden.Text(c.args+" "+c.stdin, stderr)
		}
	}
}
