package gguf

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// looksLike looks at the first bytes of a file that does not start with the GGUF magic bytes, and guesses the
// format of the file. It returns the text of an error message, which names the format and tells the user what
// to do.
func looksLike(data []byte) string {
	if len(data) == 0 {
		return "the file is empty. Download it again"
	}
	head := data[:min(len(data), 512)]
	for _, l := range looks {
		if l.match(head) {
			return "not a GGUF file: " + l.text
		}
	}
	return fmt.Sprintf("not a GGUF file: it starts with %+q, want %q", head[:min(len(head), 8)], magic)
}

// looks lists the file formats that looksLike recognizes. The first entry that matches is used, so the entry
// for plain text must be last.
var looks = []struct {
	match func(head []byte) bool
	text  string
}{
	{
		func(b []byte) bool { return len(b) < len(magic) && bytes.HasPrefix([]byte(magic), b) },
		"the file ends within its first four bytes. Download it again",
	},
	{
		startsWith("FUGG"),
		"it is a big-endian GGUF file. Convert it to little-endian",
	},
	{
		startsWith("ggml", "lmgg", "fmgg", "tjgg", "ggjt", "ggmf", "ggla"),
		"it is in a llama.cpp format that is older than GGUF. Convert the original model to GGUF",
	},
	{
		startsWith("PK\x03\x04"),
		"it is a zip archive, perhaps a PyTorch checkpoint. Use a .gguf file or a Hugging Face folder",
	},
	{startsWith("\x1f\x8b"), "it is compressed with gzip. Decompress it first"},
	{startsWith("\x28\xb5\x2f\xfd"), "it is compressed with zstd. Decompress it first"},
	{
		startsWith("\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05"),
		"it is a Python pickle, perhaps an old PyTorch checkpoint. Use a .gguf file or a Hugging Face folder",
	},
	{
		isExecuTorch,
		"it is an ExecuTorch program",
	},
	{isSafetensors, "it is a safetensors file. Use the folder that contains this file and config.json"},
	{startsWith("version https://git-lfs"), "it is a Git LFS pointer, not the file itself. Run git lfs pull"},
	{isMarkup, "it is an HTML or XML page, perhaps the model's download page. Download the model itself"},
	{isObject, "it is JSON. For a Hugging Face model, use the folder that contains this file"},
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

// isExecuTorch checks bytes 4 to 7 for the FlatBuffers file identifier of ExecuTorch: "ET" and a version of
// two digits. The offset of the root table comes first, in bytes 0 to 3.
func isExecuTorch(b []byte) bool {
	return len(b) >= 8 && b[4] == 'E' && b[5] == 'T' && isDigit(b[6]) && isDigit(b[7])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isSafetensors checks for a JSON object at byte 8. A safetensors file stores the length of the object in the
// first eight bytes.
func isSafetensors(b []byte) bool {
	return len(b) > 9 && b[6] == 0 && b[7] == 0 && b[8] == '{' && (b[9] == '"' || b[9] == '}')
}

func isMarkup(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte("<")) && isText(b) }

func isObject(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) && isText(b) }

func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(b) // b may end in the middle of a character
		}
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}
