package gguf

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// looksLike says of a file without GGUF's magic what it is instead, as far as its first bytes tell, and what
// to do.
func looksLike(data []byte) string {
	if len(data) == 0 {
		return "the file is empty: fetch it again"
	}
	head := data[:min(len(data), 512)]
	for _, l := range looks {
		if l.match(head) {
			return "not a GGUF file: " + l.text
		}
	}
	return fmt.Sprintf("not a GGUF file: it starts with %+q, want %q", head[:min(len(head), 8)], magic)
}

// looks are tried in this order: plain text comes last.
var looks = []struct {
	match func(head []byte) bool
	text  string
}{
	{
		func(b []byte) bool { return len(b) < len(magic) && bytes.HasPrefix([]byte(magic), b) },
		"it ends inside the first four bytes: fetch it again",
	},
	{
		startsWith("FUGG"),
		"it is a GGUF file with its bytes swapped (big-endian): convert it to little-endian",
	},
	{
		startsWith("ggml", "lmgg", "fmgg", "tjgg", "ggjt", "ggmf", "ggla"),
		"it is a file of llama.cpp from before GGUF: convert the model again",
	},
	{
		startsWith("PK\x03\x04"),
		"it is a zip archive (a PyTorch checkpoint is one): give a .gguf file or a Hugging Face folder",
	},
	{startsWith("\x1f\x8b"), "it is compressed with gzip: unpack it first"},
	{startsWith("\x28\xb5\x2f\xfd"), "it is compressed with zstd: unpack it first"},
	{
		startsWith("\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05"),
		"it is a Python pickle (an old PyTorch checkpoint): give a .gguf file or a Hugging Face folder",
	},
	{
		isExecuTorch,
		"it is an ExecuTorch program, which this version does not run: gpuscope graph shows what is in it",
	},
	{isSafetensors, "it is a safetensors file: give the folder that holds it and config.json"},
	{startsWith("version https://git-lfs"), "it is a Git LFS pointer, not the file itself: run git lfs pull"},
	{isMarkup, "it is an HTML or XML page (a download that went to a web page?): fetch the file itself"},
	{isObject, "it is JSON: of a Hugging Face model give the folder that holds it"},
	{isText, "it is a text file"},
}

func startsWith(prefixes ...string) func([]byte) bool {
	return func(b []byte) bool {
		for _, p := range prefixes {
			if bytes.HasPrefix(b, []byte(p)) {
				return true
			}
		}
		return false
	}
}

// isExecuTorch looks for the identifier of the FlatBuffers root, "ET" and a version of two digits, after the
// root's offset.
func isExecuTorch(b []byte) bool {
	return len(b) >= 8 && b[4] == 'E' && b[5] == 'T' && isDigit(b[6]) && isDigit(b[7])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isSafetensors looks for a JSON object after the eight bytes of its length.
func isSafetensors(b []byte) bool {
	return len(b) > 9 && b[6] == 0 && b[7] == 0 && b[8] == '{' && (b[9] == '"' || b[9] == '}')
}

func isMarkup(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte("<")) && isText(b) }

func isObject(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) && isText(b) }

func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(b) // cut in the middle of a character
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}
