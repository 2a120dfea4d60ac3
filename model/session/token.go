package session

import (
	"encoding/json"
	"unicode/utf8"
)

// tokenJSON is a token on the pipe. A byte-level token may hold a part of a character, which a JSON string cannot: then
// its bytes go beside the text.
type tokenJSON struct {
	ID    int    `json:"id"`
	Text  string `json:"text"`
	Bytes []byte `json:"bytes,omitempty"`
}

// MarshalJSON keeps every byte of the text.
func (t Token) MarshalJSON() ([]byte, error) {
	j := tokenJSON{ID: t.ID, Text: t.Text}
	if !utf8.ValidString(t.Text) {
		j.Bytes = []byte(t.Text)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Token) UnmarshalJSON(data []byte) error {
	var j tokenJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*t = Token{ID: j.ID, Text: j.Text}
	if j.Bytes != nil {
		t.Text = string(j.Bytes)
	}
	return nil
}
