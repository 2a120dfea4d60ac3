package tokenizer

import (
	"errors"
	"fmt"
	"slices"

	"gpuscope/internal/printable"
)

// Defects of a vocabulary are handled by these rules, so that no defect stops a command that needs no text:
//
//   - The defect has a default: the default is used, and Config.Warnings reports it. A special token that is
//     not in the vocabulary is added, as transformers does. A special token with an invalid or missing id is
//     found by its name, or left out. A file next to the vocabulary or a key that cannot be read is ignored.
//     If a list is stored in place of a single token, its first token is used, and all of its tokens end a
//     text.
//   - The defect has no default, and text would become wrong ids: a RefusedError states why text cannot be
//     encoded. The Tokenizer still exists. The model runs on token ids. End tokens and token texts work as
//     far as they are known.
//   - The defect affects only some texts, because a byte has no token or a token has no row in the model's
//     embedding: a command with such a text fails. There is no earlier warning.
//
// A missing vocabulary is not a defect. It causes ErrNoVocabulary without a warning.

// RefusedError is the reason why a vocabulary cannot encode text.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string {
	// These errors already tell the user what to do.
	if errors.Is(e.Err, ErrUnsupported) || errors.Is(e.Err, ErrNoVocabulary) {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v; or %v", printable.Error(e.Err, 280), ErrUnsupported)
}

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

func (c *Config) warnf(format string, args ...any) {
	c.Warnings = append(c.Warnings, printable.Short(fmt.Sprintf(format, args...), 300))
}

// Warnings returns one line for each defect that was worked around.
func (t *Tokenizer) Warnings() []string {
	if t == nil {
		return nil
	}
	return t.config.Warnings
}

// within returns id if it is a valid token id, or if the vocabulary is unknown. Otherwise it adds a warning
// and returns None. `what` names the source of the id in the warning.
func (c *Config) within(id int, what string) int {
	if id == None || id >= 0 && id < len(c.Tokens) || len(c.Tokens) == 0 {
		return id
	}
	c.warnf("%s: %s %d is ignored because it is not in the vocabulary of %d tokens",
		c.Name, what, id, len(c.Tokens))
	return None
}

// ask sets `side`, the tokens that are added at one side of a text, to the token `id`. If `id` is None, ask
// searches the vocabulary for the usual names of the token. If there is no such token, ask adds a warning and
// leaves `side` unchanged.
func (c *Config) ask(side *[]int, id *int, what string, names []string) {
	if *id == None {
		for _, name := range names {
			if *id = slices.Index(c.Tokens, name); *id != None {
				c.warnf("%s requires a token that the file does not name, so %s is used", what, name)
				break
			}
		}
	}
	if *id == None {
		c.warnf("%s requires a token that the file does not name, so prompts are encoded without it", what)
		return
	}
	*side = []int{*id}
}
