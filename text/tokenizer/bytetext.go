package tokenizer

import "fmt"

// Byte-level vocabularies write each byte as a printable character, as GPT-2 does. A byte that is a printable
// character of Latin-1 is written as this character. All other bytes are written as the characters from
// U+0100 on, in ascending order. A space is therefore written as Ġ (U+0120), and a newline as Ċ (U+010A).
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

// ByteText returns the character that represents a byte in a byte-level vocabulary.
func ByteText(b byte) string { return string(byteRunes[b]) }

// fromByteText returns the bytes that the text of a token represents. If a character of the text represents
// no byte, fromByteText returns the text itself and false.
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

// byteName returns the text of the token for a byte in SentencePiece vocabularies, such as <0x0A>.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// fromByteName returns the byte that a token with this name represents. A name that is not a result of
// byteName is returned unchanged.
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
