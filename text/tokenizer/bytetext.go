package tokenizer

import "fmt"

// Byte-level vocabularies write bytes as printable characters, GPT-2's way: a byte that is a printable
// character of Latin-1 is that character; the others take the characters from U+0100 on, in the order of
// their values. So a space is written Ġ (U+0120) and a newline Ċ (U+010A).
var (
	byteRunes [256]rune
	runeBytes = map[rune]byte{}
)

func init() {
	next := rune(0x100)
	for b := range byteRunes {
		byteRunes[b] = rune(b)
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			byteRunes[b] = next
			next++
		}
		runeBytes[byteRunes[b]] = byte(b)
	}
}

// ByteText is how a byte-level vocabulary writes a byte.
func ByteText(b byte) string { return string(byteRunes[b]) }

// fromByteText gives the bytes that a token's text stands for. A text with a character outside the alphabet
// stands for itself.
func fromByteText(text string) (bytes string, ok bool) {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		b, ok := runeBytes[r]
		if !ok {
			return text, false
		}
		out = append(out, b)
	}
	return string(out), true
}

// byteName is how SentencePiece vocabularies write the token of a byte.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// fromByteName gives the byte that a token of that name stands for; another text stands for itself.
func fromByteName(name string) string {
	const like = "<0x00>"
	if len(name) != len(like) || name[:3] != like[:3] {
		return name
	}
	var b byte
	if n, err := fmt.Sscanf(name, "<0x%02X>", &b); n == 1 && err == nil && byteName(b) == name {
		return string([]byte{b})
	}
	return name
}
